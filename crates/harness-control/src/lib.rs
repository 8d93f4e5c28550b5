//! Runs that continue until their work is done, with evidence.
//!
//! [`UntilDone`] is the [`Control`](harness_core::port::Control) of a run, configured by a [`ControlSpec`] whose parts
//! are optional:
//!
//! | part | items |
//! |---|---|
//! | required outputs, verified on evidence | [`contract`] |
//! | work items and their artifacts | [`work`] |
//! | completion signal of the model | [`SignalSpec`] |
//! | stall detection | [`StallSpec`], [`ProgressTracker`] |
//! | guidance at the end of requests | [`GuidanceSpec`], [`Instruction`] |
//! | decisions and reports | [`StopDecision`], [`ControlReport`], [`ControlEvent`] |
//! | ready-made checks of answers and results | [`checks`] |
//! | facts from outside: files, checks, JSON Schema | [`StandardFacts`] |
//!
//! The crate consists of plain data and pure functions. It calls neither models nor tools.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_control::contract::{PredicateKind, TaskContract, TextField};
//! use harness_control::{ControlReport, ControlSpec, SignalSpec, StandardFacts, UntilDone};
//! use harness_core::{Cancel, Origin};
//! use harness_core::driver::{Ports, drive};
//! use harness_core::machine::Start;
//! use harness_core::message::Message;
//! use harness_core::run::{Run, RunSpec};
//! use harness_core::transcript::Transcript;
//!
//! async fn summarize(mut ports: Ports) -> Option<ControlReport> {
//!     let named = PredicateKind::ContainsText { pattern: "summary".to_owned(), field: TextField::Response };
//!     let contract = TaskContract::new("report", "A report").require("R1", "the answer has a summary", named);
//!     let control = ControlSpec::default().with_signal(SignalSpec::default()).with_contract(contract);
//!     ports.facts = Some(Arc::new(StandardFacts::default()));
//!     let mut run = Run::new(Arc::new(RunSpec::default()), Origin::default(), Transcript::default())
//!         .with_control(Box::new(UntilDone::new(control)));
//!     let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("Write it."))).await;
//!     ControlReport::of(&end)
//! }
//! ```

pub mod checks;
pub mod contract;
mod decide;
mod decision;
mod event;
mod facts;
mod feedback;
mod guidance;
mod instruction;
mod progress;
mod report;
mod spec;
mod state;
mod until_done;
mod words;
pub mod work;

pub use decide::{DecisionCx, Refusal};
pub use decision::{StopCode, StopDecision, TurnOutcome};
pub use event::ControlEvent;
pub use facts::{ContractCheck, StandardFacts};
pub use feedback::{Feedback, FeedbackKind};
pub use instruction::{Condition, Instruction, RunFacts};
pub use progress::{Fingerprint, Progress, ProgressTracker};
pub use report::{
    CompletionReport, ControlReport, GateJudgement, GateReport, ItemsSummary, OpenItem, RunStatus,
};
pub use spec::{
    ControlFault, ControlSpec, GuidanceSection, GuidanceSpec, SignalSpec, StallReaction, StallSpec, WorkSpec,
};
pub use state::ControlState;
pub use until_done::UntilDone;
