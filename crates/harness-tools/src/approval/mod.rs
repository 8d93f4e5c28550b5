//! Approvals: one prompt at a time, and rules from earlier decisions.

mod rule;

use std::fmt;
use std::sync::Arc;

use harness_core::message::ApprovalRequest;
use harness_core::port::{ApprovalAsk, Approver, Decision, DynApprover, Prepared, ProposedCall};
use harness_core::{Cancel, Fault};
use parking_lot::Mutex;

pub use self::rule::ApprovalRule;

/// Maximum number of rules; the oldest is dropped for a new one.
const MOST_RULES: usize = 1_000;

/// Maximum size of the arguments of a rule: 64 KiB. Approvals of larger ones are not remembered.
const MOST_ARGUMENTS: usize = 64 * 1024;

/// Scope of an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remember {
    /// This call.
    #[default]
    Once,
    /// Calls of this tool with equal arguments.
    Arguments,
    /// All calls of this tool.
    Tool,
}

/// Decision of a user about a call, with its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalAnswer {
    /// Decision about the call.
    pub decision: Decision,
    /// Scope of [`Decision::Granted`]. Other decisions apply to this call only.
    pub remember: Remember,
}

impl ApprovalAnswer {
    /// Creates an approval with this scope.
    pub fn granted(remember: Remember) -> Self {
        Self { decision: Decision::Granted, remember }
    }
}

impl From<Decision> for ApprovalAnswer {
    fn from(decision: Decision) -> Self {
        Self { decision, remember: Remember::Once }
    }
}

/// Source of decisions: a terminal prompt, a form, a chat window.
pub trait Asker: Send + Sync {
    /// Decides about one call. `ask.cancel` fires when the decision is no longer needed.
    fn ask(&self, ask: ApprovalAsk) -> impl Future<Output = ApprovalAnswer> + Send;
}

harness_core::twin! {
    DynAsker of Asker {
        async fn ask_boxed = ask(ask: ApprovalAsk) -> ApprovalAnswer;
    }
}

/// Approver that prompts for one call at a time, in order, and only for calls that no rule covers.
///
/// An approval with a scope ([`Remember`]) adds a rule, which also applies to pending calls. At most 1,000
/// rules are kept; [`rules`](Self::rules) and [`with_rules`](Self::with_rules) move them to another
/// session. Clones share them.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::ToolCall;
/// use harness_core::port::{ApprovalAsk, Approver, Decision, ProposedCall};
/// use harness_core::tool::ToolDef;
/// use harness_core::{Cancel, Json};
/// use harness_tools::{ApprovalAnswer, Asker, Remember, StandingApprovals};
///
/// struct Trusting;
///
/// impl Asker for Trusting {
///     async fn ask(&self, _: ApprovalAsk) -> ApprovalAnswer {
///         ApprovalAnswer::granted(Remember::Tool)
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let approver = StandingApprovals::new(Trusting);
/// let call = Arc::new(ToolCall::new("c", "shell", Json::empty_object()));
/// let shell = ProposedCall::new(call, ToolDef::new("shell", "Runs a program"), "main".into(), 1);
/// let ask = ApprovalAsk { proposed: shell.held("it needs approval"), cancel: Cancel::never() };
/// assert_eq!(approver.decide(ask).await, Decision::Granted);
/// assert_eq!(approver.rules().len(), 1);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StandingApprovals {
    asker: Arc<dyn DynAsker>,
    shared: Arc<Shared>,
    always: Vec<Arc<Always>>,
    notes: Option<Arc<dyn DynApprover>>,
}

type Always = dyn Fn(&ApprovalAsk) -> bool + Send + Sync;

#[derive(Default)]
struct Shared {
    rules: Mutex<Vec<ApprovalRule>>,
    /// Held by the call in the prompt; others wait in order.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for StandingApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandingApprovals")
            .field("rules", &self.shared.rules.lock().len())
            .finish_non_exhaustive()
    }
}

impl StandingApprovals {
    /// Creates an approver without rules.
    pub fn new(asker: impl Asker + 'static) -> Self {
        Self { asker: Arc::new(asker), shared: Arc::default(), always: Vec::new(), notes: None }
    }

    /// Wraps another approver, whose decisions apply to one call each and which still prepares approval
    /// requests of models.
    pub fn around(approver: impl Approver + 'static) -> Self {
        let approver: Arc<dyn DynApprover> = Arc::new(approver);
        Self { notes: Some(Arc::clone(&approver)), ..Self::new(Once(approver)) }
    }

    /// Replaces the rules.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = ApprovalRule>) -> Self {
        let rules = rules.into_iter();
        self.shared.rules.lock().clear();
        rules.for_each(|rule| self.add(rule));
        self
    }

    /// Adds a function that approves calls without a prompt. It must be quick.
    #[must_use]
    pub fn always(mut self, allows: impl Fn(&ApprovalAsk) -> bool + Send + Sync + 'static) -> Self {
        self.always.push(Arc::new(allows));
        self
    }

    /// Current rules, oldest first.
    pub fn rules(&self) -> Vec<ApprovalRule> {
        self.shared.rules.lock().clone()
    }

    /// Adds a rule; of more than 1,000 the oldest is dropped.
    pub fn add(&self, rule: ApprovalRule) {
        let mut rules = self.shared.rules.lock();
        if rules.contains(&rule) {
            return;
        }
        if rules.len() >= MOST_RULES {
            rules.remove(0);
        }
        rules.push(rule);
    }

    /// Removes a rule. Returns whether it existed.
    pub fn revoke(&self, rule: &ApprovalRule) -> bool {
        let mut rules = self.shared.rules.lock();
        let before = rules.len();
        rules.retain(|known| known != rule);
        rules.len() < before
    }

    /// Whether a call would run without a prompt now, because of a rule or a function of [`always`](Self::always).
    pub fn approves(&self, proposed: &ProposedCall) -> bool {
        self.is_approved(&ApprovalAsk { proposed: proposed.clone(), cancel: Cancel::never() })
    }

    fn is_approved(&self, ask: &ApprovalAsk) -> bool {
        self.shared.rules.lock().iter().any(|rule| rule.covers(&ask.proposed.call))
            || self.always.iter().any(|allows| allows(ask))
    }

    fn remember(&self, ask: &ApprovalAsk, remember: Remember) {
        match remember {
            Remember::Once => {}
            Remember::Arguments if ask.proposed.call.arguments.text().len() > MOST_ARGUMENTS => {}
            Remember::Arguments => self.add(ApprovalRule::of_call(&ask.proposed.call)),
            Remember::Tool => self.add(ApprovalRule::of_its_tool(&ask.proposed.call)),
        }
    }
}

impl Approver for StandingApprovals {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        if self.is_approved(&ask) {
            return Decision::Granted;
        }
        let _turn = tokio::select! {
            turn = self.shared.turn.lock() => turn,
            () = ask.cancel.cancelled() => return Decision::Later,
        };
        // A rule may have been added while it waited.
        if self.is_approved(&ask) {
            return Decision::Granted;
        }
        let answer = self.asker.ask_boxed(ask.clone()).await;
        if answer.decision == Decision::Granted {
            self.remember(&ask, answer.remember);
        }
        answer.decision
    }

    async fn prepare(&self, request: ApprovalRequest) -> Result<Prepared, Fault> {
        match &self.notes {
            Some(approver) => approver.prepare_boxed(request).await,
            None => Ok(Prepared { request, continuation: None }),
        }
    }
}

/// Decisions for one call each.
struct Once(Arc<dyn DynApprover>);

impl Asker for Once {
    async fn ask(&self, ask: ApprovalAsk) -> ApprovalAnswer {
        self.0.decide_boxed(ask).await.into()
    }
}
