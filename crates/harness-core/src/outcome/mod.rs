//! How a turn or a run ended, exactly why, and the evidence for it.

mod continuation;
pub(crate) mod end;
pub(crate) mod ledger;
mod mode;
mod question;
pub(crate) mod stop;
mod usage;

pub(crate) use crate::fault::{Fault, FaultSource};
pub(crate) use continuation::{CONTINUATION_VERSION, WAITING};
pub use continuation::{Continuation, ContinuationKind, PendingCall};
pub(crate) use end::End;
pub use end::Waiver;
pub use mode::StopMode;
pub use question::{AskReason, Question};
pub(crate) use stop::{Evidence, GuardStage, Outcome, Stop, StopReason};
pub use stop::{ThinEvidence, ToolEvidence};
pub use usage::{Purpose, PurposeUsage, TotalUsage};
