//! Gates: code that may allow, change, hold or refuse something before it happens.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, HookNote, Ledger, ProposedCall, StopStanding};
use crate::cancel::Cancel;
use crate::ids::GateName;
use crate::json::Json;
use crate::machine::Origin;
use crate::outcome::{End, Purpose};
use crate::time::Time;
use crate::transcript::Prefix;

/// What a gate may look at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GateCx {
    /// The transcript so far: the evidence.
    pub log: Prefix,
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// Fires when the answer is not wanted any more.
    pub cancel: Cancel,
    /// When it is asked.
    pub now: Time,
    /// Whether somebody listens, so that [`Ruling::facts`] are worth building.
    pub facts_wanted: bool,
    /// Where the run stands, for stop gates; `None` for others.
    pub standing: Option<Arc<StopStanding>>,
    /// Where model calls of the gate are reserved and settled.
    pub ledger: Ledger,
}

impl GateCx {
    /// What a gate may look at, for tests of gates and drivers of your own. Facts are wanted.
    pub fn new(log: Prefix, origin: Arc<Origin>, cancel: Cancel, now: Time) -> Self {
        let ledger = Ledger::unlimited(Purpose::Judge);
        Self { log, origin, cancel, now, facts_wanted: true, standing: None, ledger }
    }

    /// The same with a ledger for its model calls.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger, ..self }
    }

    /// The same for a stop gate.
    #[must_use]
    pub fn standing_at(self, standing: Arc<StopStanding>) -> Self {
        Self { standing: Some(standing), ..self }
    }

    /// The same, with or without facts.
    #[must_use]
    pub fn with_facts(self, wanted: bool) -> Self {
        Self { facts_wanted: wanted, ..self }
    }
}

/// What a tool gate says. The strictest of all gates wins: halt or deny, hold, rewrite, allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Go on with these arguments.
    Rewrite(Json),
    /// Ask the approver; the remaining gates are still asked first.
    Hold {
        /// Why.
        reason: String,
    },
    /// Do not run it; the model reads the message.
    Deny {
        /// What the model reads.
        message: String,
    },
    /// Do not run it, and end the turn `policy_denied`.
    Halt {
        /// The call's result, which the model may read later.
        message: String,
        /// Why, for the end's evidence.
        reason: String,
    },
}

impl Verdict {
    /// The wire name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Rewrite(_) => "rewrite",
            Self::Hold { .. } => "hold",
            Self::Deny { .. } => "deny",
            Self::Halt { .. } => "halt",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ruling {
    /// What the gate says.
    pub verdict: Verdict,
    /// What the decision rests on, for the event: an object of the gate's own. `None` for simple gates,
    /// and when nobody listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
    /// What a hook did, when the gate is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Box<HookNote>>,
}

impl Ruling {
    /// A verdict and what it rests on.
    pub fn new(verdict: Verdict, facts: Option<Json>) -> Self {
        Self { verdict, facts, hook: None }
    }

    /// The same ruling, which is that of a hook.
    #[must_use]
    pub fn with_hook(self, note: HookNote) -> Self {
        Self { hook: Some(Box::new(note)), ..self }
    }
}

impl From<Verdict> for Ruling {
    fn from(verdict: Verdict) -> Self {
        Self::new(verdict, None)
    }
}

impl From<Verdict> for Box<Ruling> {
    fn from(verdict: Verdict) -> Self {
        Self::new(verdict.into())
    }
}

/// What a stop gate says about an end that claims to be complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// Believe it.
    Accept,
    /// Believe it although the condition is not met; the result says so. Refused in strict mode.
    Waive {
        /// Why.
        why: String,
    },
    /// Go on: another turn, with this guidance.
    Continue {
        /// What the model is told.
        guidance: String,
    },
}

impl Judgement {
    /// The wire name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Waive { .. } => "waive",
            Self::Continue { .. } => "continue",
        }
    }
}

/// A judgement with what a hook did, when the gate is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Judged {
    /// What the gate says.
    pub judgement: Judgement,
    /// What a hook did, when the gate is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Box<HookNote>>,
}

impl Judged {
    /// The same judgement, which is that of a hook.
    #[must_use]
    pub fn with_hook(self, note: HookNote) -> Self {
        Self { hook: Some(Box::new(note)), ..self }
    }
}

impl From<Judgement> for Judged {
    fn from(judgement: Judgement) -> Self {
        Self { judgement, hook: None }
    }
}

/// When a gate is asked about a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum GateStage {
    /// Before the arguments are validated. Such a gate prepares them: it sees the arguments of the model, and
    /// those of its [`Verdict::Rewrite`] are validated in their place.
    Prepare,
    /// After the arguments were validated.
    #[default]
    Decide,
}

/// Decides about tool calls and handoffs before they run.
///
/// ```
/// use harness_core::port::{ProposedCall, GateCx, ToolGate, Verdict};
/// use harness_core::GateName;
///
/// struct NoShell;
///
/// impl ToolGate for NoShell {
///     fn name(&self) -> GateName {
///         "no-shell".into()
///     }
///
///     async fn check(&self, proposed: &ProposedCall, _: &GateCx) -> Verdict {
///         if proposed.call.name == "shell" {
///             return Verdict::Deny { message: "the shell is not available here".into() };
///         }
///         Verdict::Allow
///     }
/// }
/// ```
///
/// A gate that panics, or gives no answer before the turn gives up, denies.
///
/// A gate of the stage [`GateStage::Prepare`] is asked before the arguments are validated, and so can mend
/// what would be refused: an old field name, a value in another unit. It may be asked again about a call after a
/// restart, so preparing prepared arguments must change nothing. Other verdicts of it count as usual. The
/// transcript keeps the arguments of the model. It is not asked about arguments that an approver has edited, nor
/// about arguments that are no JSON.
///
/// ```
/// use harness_core::port::{ProposedCall, GateCx, GateStage, ToolGate, Verdict};
/// use harness_core::{GateName, Json};
///
/// /// Models still write `q` for the argument `query`.
/// struct OldName;
///
/// impl ToolGate for OldName {
///     fn name(&self) -> GateName {
///         "old-name".into()
///     }
///
///     fn stage(&self) -> GateStage {
///         GateStage::Prepare
///     }
///
///     async fn check(&self, ask: &ProposedCall, _: &GateCx) -> Verdict {
///         match ask.call.arguments.text().replacen("{\"q\":", "{\"query\":", 1) {
///             text if text == ask.call.arguments.text() => Verdict::Allow,
///             text => Json::parse(&text).map_or(Verdict::Allow, Verdict::Rewrite),
///         }
///     }
/// }
/// ```
pub trait ToolGate: Send + Sync {
    /// The gate's name in events and results.
    fn name(&self) -> GateName;

    /// When it is asked. Default after the arguments were validated.
    fn stage(&self) -> GateStage {
        GateStage::Decide
    }

    /// Decides about one call.
    fn check(&self, proposed: &ProposedCall, cx: &GateCx) -> impl Future<Output = Verdict> + Send;

    /// Decides about one call and says what the decision rests on. The default asks [`check`](Self::check)
    /// and gives no facts; this is what a turn asks.
    fn rule(&self, proposed: &ProposedCall, cx: &GateCx) -> impl Future<Output = Ruling> + Send {
        async move { Ruling::from(self.check(proposed, cx).await) }
    }
}

/// The object-safe twin of [`ToolGate`].
pub trait DynToolGate: Send + Sync {
    /// [`ToolGate::name`].
    fn gate_name(&self) -> GateName;

    /// [`ToolGate::stage`].
    fn gate_stage(&self) -> GateStage;

    /// [`ToolGate::rule`], boxed.
    fn rule_boxed<'a>(&'a self, proposed: &'a ProposedCall, cx: &'a GateCx) -> BoxFuture<'a, Ruling>;
}

impl<G: ToolGate> DynToolGate for G {
    fn gate_name(&self) -> GateName {
        self.name()
    }

    fn gate_stage(&self) -> GateStage {
        self.stage()
    }

    fn rule_boxed<'a>(&'a self, proposed: &'a ProposedCall, cx: &'a GateCx) -> BoxFuture<'a, Ruling> {
        Box::pin(self.rule(proposed, cx))
    }
}

/// Decides whether an end that claims to be complete is believed.
pub trait StopGate: Send + Sync {
    /// The gate's name in events and results.
    fn name(&self) -> GateName;

    /// Judges an end with reason `answer_finalized`. The evidence is `cx.log`.
    fn judge(&self, end: &End, cx: &GateCx) -> impl Future<Output = Judgement> + Send;

    /// Judges an end and says what a hook did for it. The default asks [`judge`](Self::judge); this is what a
    /// run asks.
    fn weigh(&self, end: &End, cx: &GateCx) -> impl Future<Output = Judged> + Send {
        async move { Judged::from(self.judge(end, cx).await) }
    }
}

/// The object-safe twin of [`StopGate`].
pub trait DynStopGate: Send + Sync {
    /// [`StopGate::name`].
    fn gate_name(&self) -> GateName;

    /// [`StopGate::weigh`], boxed.
    fn weigh_boxed<'a>(&'a self, end: &'a End, cx: &'a GateCx) -> BoxFuture<'a, Judged>;
}

impl<G: StopGate> DynStopGate for G {
    fn gate_name(&self) -> GateName {
        self.name()
    }

    fn weigh_boxed<'a>(&'a self, end: &'a End, cx: &'a GateCx) -> BoxFuture<'a, Judged> {
        Box::pin(self.weigh(end, cx))
    }
}
