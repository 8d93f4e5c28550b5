//! Outcomes, stop reasons and their evidence.
//!
//! ```
//! use harness_core::outcome::{
//!     AskReason, Continuation, ContinuationKind, PendingCall, Purpose, PurposeUsage, Question, StopMode,
//!     ThinEvidence, ToolEvidence, TotalUsage, Waiver,
//! };
//! use harness_core::run::RunSpec;
//! use harness_core::{End, Evidence, GuardStage, Outcome, Stop, StopReason};
//!
//! /// Text of a product for an end.
//! fn text(end: &End) -> String {
//!     let Stop { reason, evidence, .. } = &end.stop;
//!     match (end.outcome(), evidence) {
//!         (Outcome::Completed | Outcome::NeedsClarification, _) => end.answer.clone().unwrap_or_default(),
//!         (_, Evidence::Guardrail { stage: GuardStage::Input, .. }) => "Please ask something else.".to_owned(),
//!         _ => reason.user_message(false).to_owned(),
//!     }
//! }
//!
//! fn pending(continuation: &Continuation) -> &[PendingCall] {
//!     if continuation.kind == ContinuationKind::Approval { &continuation.pending } else { &[] }
//! }
//!
//! fn cause(evidence: &Evidence) -> Option<&ToolEvidence> {
//!     if let Evidence::ToolResult(result) = evidence { Some(result) } else { None }
//! }
//!
//! fn compaction_usage(total: &TotalUsage) -> PurposeUsage {
//!     total.of(Purpose::Compaction)
//! }
//!
//! let mut spec = RunSpec::default();
//! spec.mode = StopMode::StrictAutomation;
//! let question = Question::new("Which of the two accounts?", AskReason::AmbiguousIdentifier);
//! let waiver = Waiver { gate: "tests-ran".into(), why: "the user stopped them".to_owned() };
//! let thin = ThinEvidence { tool_call_count: 1, output_chars: 12, claim_markers: vec!["date".to_owned()] };
//! # assert!(StopReason::TimeoutReached.user_message(false).contains("too long"));
//! # let _ = (text, pending, cause, compaction_usage, question, waiver, thin);
//! ```

mod continuation;
pub(crate) mod end;
pub(crate) mod evidence;
pub(crate) mod ledger;
pub(crate) mod stop;
mod usage;

pub(crate) use crate::fault::{Fault, FaultSource};
pub(crate) use continuation::{CONTINUATION_VERSION, WAITING};
pub use continuation::{Continuation, ContinuationKind, PendingCall, PendingWork};
pub(crate) use end::End;
pub use end::Waiver;
pub use evidence::{AskReason, Question, ThinEvidence, ToolEvidence};
pub(crate) use evidence::{Evidence, GuardStage};
pub use stop::StopMode;
pub(crate) use stop::{Outcome, Stop, StopReason};
pub use usage::{Purpose, PurposeUsage, TotalUsage};
