//! Start of a run: messages, earlier work to resume, and options.

use std::fmt;
use std::sync::Arc;

use harness_core::machine::{CallDecision, Resume};
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::{Continuation, PendingCall};
use harness_core::port::{Decision, DynContextPipeline};
use harness_core::{AgentId, Cancel, Json, RunId, ToolName, TurnId};

use crate::config::ResolvedConfig;

/// Prompt of a thread, for [`Thread::prompt`](crate::Thread::prompt). A text converts into one.
///
/// ```
/// use harness_core::Cancel;
/// use harness_core::message::Message;
/// use harness_runtime::Prompt;
///
/// let cancel = Cancel::new();
/// let prompt = Prompt::from("What is due today?").cancel_with(cancel.clone()).user("ada");
/// assert_eq!(prompt.messages.len(), 1);
/// let several = Prompt::new([Message::user("Two things."), Message::user("First: …")]);
/// assert_eq!(several.messages.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Prompt {
    /// Messages in order. Blank user messages are omitted; without any other the run resumes.
    pub messages: Vec<Arc<Message>>,
    /// Earlier work to resume. Default the transcript.
    pub from: ResumeFrom,
    /// Stops the run in good order when it fires: finished work is kept, every call gets its result, and the run ends
    /// `cancelled`. Default: only [`Thread::abort`](crate::Thread::abort) stops it.
    pub cancel: Option<Cancel>,
    /// Options of its run.
    pub options: MessageOptions,
}

/// Earlier work that a run resumes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ResumeFrom {
    /// The transcript: calls that a crash or a pending approval left open are settled, then the model is called.
    #[default]
    Transcript,
    /// Continuation of an earlier run, from its [`End`](harness_core::End). It must belong to this thread, which must not
    /// have changed since, and is used once.
    Continuation {
        /// Continuation of the earlier run.
        continuation: Box<Continuation>,
        /// Answer to its question, decisions on pending calls, or raised limits; `None` if the prompt has the answer.
        resume: Option<Resume>,
    },
    /// Last checkpoint of an unfinished run of an earlier process. Turns, budgets, evidence and work items continue. Limits
    /// are those of the thread, so raised limits let an exhausted run continue. Time between processes does not count.
    Checkpoint(RunId),
}

impl ResumeFrom {
    /// A continuation, and how to resume it.
    pub fn continuation(continuation: Continuation, resume: Resume) -> Self {
        Self::Continuation { continuation: Box::new(continuation), resume: Some(resume) }
    }

    /// A continuation whose pending calls are decided one by one. A decision holds for exactly the call that is shown.
    ///
    /// ```
    /// use harness_core::outcome::Continuation;
    /// use harness_core::port::Decision;
    /// use harness_runtime::ResumeFrom;
    ///
    /// fn pay_nothing(stored: Continuation) -> ResumeFrom {
    ///     ResumeFrom::decided(stored, |call| match call.tool.as_str() {
    ///         "pay" => Decision::Denied { reason: "no budget".to_owned() },
    ///         _ => Decision::Granted,
    ///     })
    /// }
    /// # let _ = pay_nothing;
    /// ```
    pub fn decided(continuation: Continuation, mut decide: impl FnMut(&PendingCall) -> Decision) -> Self {
        let decide = |call: &PendingCall| {
            CallDecision::new(call.call_id.clone(), decide(call)).having_seen(call.digest.clone())
        };
        let decisions: Vec<CallDecision> = continuation.pending.iter().map(decide).collect();
        Self::continuation(continuation, Resume::decided(decisions))
    }
}

impl Prompt {
    /// A prompt of several messages.
    pub fn new<M: Into<Message>>(messages: impl IntoIterator<Item = M>) -> Self {
        let messages = messages.into_iter().map(|message| Arc::new(message.into())).collect();
        Self { messages, ..Self::default() }
    }

    /// Resumes without a new message.
    pub fn resuming(from: ResumeFrom) -> Self {
        Self { from, ..Self::default() }
    }

    /// Appends a text, such as guidance for a resumed run.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.messages.extend(Self::from(text.into()).messages);
        self
    }

    /// Stops the run in good order when `cancel` fires.
    #[must_use]
    pub fn cancel_with(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets context values, in place of those of the thread.
    #[must_use]
    pub fn context(mut self, overrides: Json) -> Self {
        self.options.context = Some(overrides);
        self
    }

    /// Starts with an agent, in place of the active one.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<AgentId>) -> Self {
        self.options.agent = Some(agent.into());
        self
    }

    /// Requires answers that match a JSON Schema, of whichever agent answers. Replaces the schemas of the agents.
    /// [`Response::typed`](crate::Response::typed) sets the schema of a type.
    #[must_use]
    pub fn output(mut self, schema: Json) -> Self {
        self.options.output = Some(schema);
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.options.user = Some(user.into());
        self
    }

    /// Accepts a session or run of a different descriptor, whose agents and tools may differ.
    #[must_use]
    pub fn under_any_descriptor(mut self) -> Self {
        self.options.any_descriptor = true;
        self
    }
}

impl From<UserMessage> for Prompt {
    fn from(message: UserMessage) -> Self {
        Self::new([message])
    }
}

impl From<Message> for Prompt {
    fn from(message: Message) -> Self {
        Self::new([message])
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        UserMessage::text(text).from_origin("prompt").into()
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Options of the run that a message starts. Unset ones are those of the thread.
///
/// Queued messages start one run together only if their options are equal; others start separate runs, in order. A
/// message that joins a run between its rounds, or at a resumption, uses the options of that run.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MessageOptions {
    /// The name of the assistant ([`Origin::assistant`](harness_core::Origin::assistant)).
    pub assistant: Option<Arc<str>>,
    /// The user ([`Origin::user`](harness_core::Origin::user)).
    pub user: Option<Arc<str>>,
    /// The workspace ([`Origin::workspace`](harness_core::Origin::workspace)).
    pub workspace: Option<Arc<str>>,
    /// The name of the first turn ([`Origin::turn`](harness_core::Origin::turn)).
    pub turn: Option<TurnId>,
    /// The caller's own data ([`Origin::metadata`](harness_core::Origin::metadata)).
    pub metadata: Option<Json>,
    /// Values laid over the defaults of the descriptor's context.
    pub context: Option<Json>,
    /// The agent that it begins with. Default: the one that the conversation is with, the entry agent at its beginning.
    pub agent: Option<AgentId>,
    /// The tools that it may use, of those in use in the thread.
    pub allowed_tools: Option<Arc<[ToolName]>>,
    /// JSON Schema that the answer must match, in place of that of the agent
    /// ([`AgentConfig::output`](harness_core::port::AgentConfig::output)).
    pub output: Option<Json>,
    /// The layers in place of the thread's. Gates stay as they are.
    pub layers: Option<Arc<dyn DynContextPipeline>>,
    /// Whether a session is continued that was started under another descriptor.
    pub any_descriptor: bool,
}

impl MessageOptions {
    /// The configuration of a run that has this.
    pub(crate) fn over(self, settled: &Arc<ResolvedConfig>) -> Arc<ResolvedConfig> {
        if self == Self::default() {
            return Arc::clone(settled);
        }
        let mut config = settled.config.clone();
        let origin = &mut config.origin;
        origin.assistant = self.assistant.or(origin.assistant.take());
        origin.user = self.user.or(origin.user.take());
        origin.workspace = self.workspace.or(origin.workspace.take());
        origin.turn = self.turn.or(origin.turn.take());
        origin.metadata = self.metadata.or(origin.metadata.take());
        config.ports.layers = self.layers.or(config.ports.layers);
        config.any_descriptor |= self.any_descriptor;
        config.active_tools = match (self.allowed_tools, config.active_tools) {
            (Some(own), Some(most)) => Some(own.iter().filter(|name| most.contains(name)).cloned().collect()),
            (own, most) => own.or(most),
        };
        if self.output.is_some() {
            config.validate_output();
        }
        let context = self.context.or_else(|| config.context.clone());
        Arc::new(ResolvedConfig { config, agent: self.agent, context, output: self.output })
    }
}

impl fmt::Debug for MessageOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageOptions")
            .field("user", &self.user)
            .field("agent", &self.agent)
            .field("allowed_tools", &self.allowed_tools)
            .field("has_metadata", &self.metadata.is_some())
            .field("has_context", &self.context.is_some())
            .field("has_output", &self.output.is_some())
            .field("has_layers", &self.layers.is_some())
            .finish_non_exhaustive()
    }
}

impl PartialEq for MessageOptions {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            assistant,
            user,
            workspace,
            turn,
            metadata,
            context,
            agent,
            allowed_tools,
            output,
            layers,
            any_descriptor,
        } = self;
        let same_layers = match (layers, &other.layers) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_layers
            && (assistant, user, workspace, turn)
                == (&other.assistant, &other.user, &other.workspace, &other.turn)
            && (metadata, context, agent) == (&other.metadata, &other.context, &other.agent)
            && (allowed_tools, any_descriptor) == (&other.allowed_tools, &other.any_descriptor)
            && *output == other.output
    }
}

impl Eq for MessageOptions {}
