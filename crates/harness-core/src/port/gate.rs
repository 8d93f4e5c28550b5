//! Stop gates: code that may refuse an end.

use serde::{Deserialize, Serialize};

use super::{BoxFuture, HookNote};
use crate::decide::DecideCx;
use crate::ids::GateName;
use crate::outcome::End;

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

/// Decides whether an end that claims to be complete is believed.
pub trait StopGate: Send + Sync {
    /// The gate's name in events and results.
    fn name(&self) -> GateName;

    /// Judges an end with reason `answer_finalized`. The evidence is `cx.log`.
    fn judge(&self, end: &End, cx: &DecideCx) -> impl Future<Output = Judgement> + Send;

    /// Judges an end and says what a hook did for it. The default asks [`judge`](Self::judge); this is what a
    /// run asks.
    fn weigh(&self, end: &End, cx: &DecideCx) -> impl Future<Output = Judged> + Send {
        async move { Judged::from(self.judge(end, cx).await) }
    }
}

/// The object-safe twin of [`StopGate`].
pub trait DynStopGate: Send + Sync {
    /// [`StopGate::name`].
    fn gate_name(&self) -> GateName;

    /// [`StopGate::weigh`], boxed.
    fn weigh_boxed<'a>(&'a self, end: &'a End, cx: &'a DecideCx) -> BoxFuture<'a, Judged>;
}

impl<G: StopGate> DynStopGate for G {
    fn gate_name(&self) -> GateName {
        self.name()
    }

    fn weigh_boxed<'a>(&'a self, end: &'a End, cx: &'a DecideCx) -> BoxFuture<'a, Judged> {
        Box::pin(self.weigh(end, cx))
    }
}
