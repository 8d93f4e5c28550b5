//! What a run begins with: something that is said, what it goes on with, and what is particular about it.

use std::fmt;
use std::sync::Arc;

use harness_core::machine::Resume;
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::Continuation;
use harness_core::port::DynContextPipeline;
use harness_core::{AgentId, Cancel, Json, RunId, ToolName, TurnId};

use crate::config::ResolvedConfig;

/// Something that is said to a thread, for [`Thread::prompt`](crate::Thread::prompt). A text is the simplest one.
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
    /// What is said, in order. Empty user messages are left out; with no other message the work goes on.
    pub messages: Vec<Arc<Message>>,
    /// What it goes on with. Default the transcript.
    pub from: ResumeFrom,
    /// Stops the run in good order when it fires: finished work is kept, every call gets its result, and the run ends
    /// `cancelled`. Default: nobody stops it but [`Thread::abort`](crate::Thread::abort).
    pub cancel: Option<Cancel>,
    /// What is particular about its run.
    pub options: MessageOptions,
}

/// What a run goes on with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ResumeFrom {
    /// The transcript as it is: calls that a crash or a pending approval left open are settled, then the model is
    /// asked.
    #[default]
    Transcript,
    /// What an earlier run left, from its [`End`](harness_core::End). It must belong to this conversation, which must
    /// not have gone on since, and is used once.
    Continuation {
        /// What it left.
        continuation: Box<Continuation>,
        /// The answer to its question, the decisions about the calls that it parked, or more of what had run out;
        /// `None` when the prompt says it, and calls are not decided about.
        resume: Option<Resume>,
    },
    /// The last checkpoint of a run that an earlier process began and did not complete. It counts on: turns, budgets,
    /// evidence, work items. Its limits are those of the thread, so a run that had run out of something goes on with
    /// more of it; time in which no process had the run does not count.
    Checkpoint(RunId),
}

impl ResumeFrom {
    /// What an earlier run left, and how that is resumed.
    pub fn continuation(continuation: Continuation, resume: Resume) -> Self {
        Self::Continuation { continuation: Box::new(continuation), resume: Some(resume) }
    }
}

impl Prompt {
    /// These messages.
    pub fn new<M: Into<Message>>(messages: impl IntoIterator<Item = M>) -> Self {
        let messages = messages.into_iter().map(|message| Arc::new(message.into())).collect();
        Self { messages, ..Self::default() }
    }

    /// Nothing new: the work goes on.
    pub fn resuming(from: ResumeFrom) -> Self {
        Self { from, ..Self::default() }
    }

    /// The same with a text behind what is said already: guidance for a run that is resumed, for example.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.messages.extend(Self::from(text.into()).messages);
        self
    }

    /// The same, stopped in good order when `cancel` fires.
    #[must_use]
    pub fn cancel_with(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// The same with values laid over the defaults of the descriptor's context, in place of those of the thread.
    #[must_use]
    pub fn context(mut self, overrides: Json) -> Self {
        self.options.context = Some(overrides);
        self
    }

    /// The same for an agent, in place of the one that the conversation is with.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<AgentId>) -> Self {
        self.options.agent = Some(agent.into());
        self
    }

    /// The same for a user.
    #[must_use]
    pub fn user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.options.user = Some(user.into());
        self
    }

    /// The same also in a session, or of a run, that was started under another descriptor: an explicit choice, because
    /// agents and tools may not be what they were.
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

/// What is particular about the run that begins with a message; what is not said here is the thread's.
///
/// It counts for a message that begins a run. Messages that wait together begin one run only when they agree in it;
/// the others begin runs of their own, in their order. A message that comes between the rounds of a run, or with which
/// a transcript is resumed, joins a run that has all of this already.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MessageOptions {
    /// The name of the assistant ([`Origin::assistant`](harness_core::Origin::assistant)).
    pub assistant: Option<Arc<str>>,
    /// Whose work it is ([`Origin::user`](harness_core::Origin::user)).
    pub user: Option<Arc<str>>,
    /// Where it belongs ([`Origin::workspace`](harness_core::Origin::workspace)).
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
        Arc::new(ResolvedConfig { config, agent: self.agent, context: self.context })
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
    }
}

impl Eq for MessageOptions {}
