//! The control of a run of many turns: when it may end, what it is told, whether it still makes progress.
//!
//! Plain data and pure functions over what the run knows; nothing here asks a model or a tool. [`UntilDone`] is the
//! [`Control`](crate::port::Control) of a run that a [`ControlSpec`] configures.

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

pub use decide::{Deciding, Refusal};
pub use decision::{StopCode, StopDecision, TurnOutcome};
pub use event::ControlEvent;
pub use facts::{Check, StandardFacts};
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
