//! How a turn or a run ended, exactly why, and the evidence for it.
//!
//! ```
//! use harness_core::outcome::{
//!     AskReason, Continuation, ContinuationKind, PendingCall, Purpose, PurposeUsage, Question, TotalUsage, Waiver,
//! };
//! use harness_core::{End, Evidence, GuardStage, Outcome, Stop};
//!
//! /// What a product shows of an end.
//! fn shown(end: &End) -> String {
//!     let Stop { reason, evidence, .. } = &end.stop;
//!     match (end.outcome(), evidence) {
//!         (Outcome::Completed | Outcome::NeedsClarification, _) => end.answer.clone().unwrap_or_default(),
//!         (_, Evidence::Guardrail { stage: GuardStage::Input, .. }) => "Please ask something else.".to_owned(),
//!         _ => reason.user_message(false).to_owned(),
//!     }
//! }
//!
//! /// The calls that somebody has to decide about.
//! fn parked(continuation: &Continuation) -> &[PendingCall] {
//!     if continuation.kind == ContinuationKind::Approval { &continuation.pending } else { &[] }
//! }
//!
//! /// What compactions took.
//! fn of_compactions(used: &TotalUsage) -> PurposeUsage {
//!     used.of(Purpose::Compaction)
//! }
//!
//! let question = Question::new("Which of the two accounts?", AskReason::AmbiguousIdentifier);
//! let waiver = Waiver::new("tests-ran".into(), "the user stopped them");
//! # assert!(question.metadata.is_none() && waiver.why.starts_with("the user"));
//! # let _ = (shown, parked, of_compactions);
//! ```

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
