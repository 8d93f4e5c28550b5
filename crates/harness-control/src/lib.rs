//! Runs that go on until their work is done, and prove it.
//!
//! [`UntilDone`] is the [`Control`](harness_core::port::Control) of a run that a [`ControlSpec`] configures; each part of
//! it is optional:
//!
//! | part | here |
//! |---|---|
//! | what must have been produced, judged on evidence | [`contract`] |
//! | what a run has set out to do, and what came of it | [`work`] |
//! | the tool by which a model says that the work is done | [`SignalSpec`] |
//! | runs that change nothing any more | [`StallSpec`], [`ProgressTracker`] |
//! | what the model is told with a request | [`GuidanceSpec`], [`Instruction`] |
//! | how each turn was decided, and what the end reports | [`StopDecision`], [`ControlReport`], [`ControlEvent`] |
//! | ready-made checks of answers and results | [`checks`] |
//! | facts from outside: files, checks, JSON Schema | [`StandardFacts`] |
//!
//! Plain data and pure functions over what the run knows; nothing here asks a model or a tool, or waits.
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
//!     let contract = TaskContract::new("report", "A report").require("R1", "it names the summary", named);
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

pub use decide::{Deciding, Refusal};
pub use decision::{StopCode, StopDecision, TurnOutcome};
pub use event::ControlEvent;
pub use facts::{ContractCheck, StandardFacts};
pub use feedback::{Feedback, FeedbackKind};
pub use guidance::Guidance;
pub use instruction::{Instruction, Instructions, Standing, When};
pub use progress::{Fingerprint, Progress, ProgressTracker};
pub use report::{
    CompletionReport, ControlReport, GateJudgement, GateReport, ItemsSummary, OpenItem, RunStatus,
};
pub use spec::{
    ControlFault, ControlSpec, GuidanceSection, GuidanceSpec, SignalSpec, StallReaction, StallSpec, WorkSpec,
};
pub use state::ControlState;
pub use until_done::UntilDone;
