//! Flows: programs of steps that survive a crash.
//!
//! | step | what it does |
//! |---|---|
//! | [`Step::run`] | code |
//! | [`Step::model`], [`Step::model_json`] | a turn of core's machine, with its tools |
//! | [`Step::tool`] | one call of a tool, behind the same gates |
//! | [`Step::branch`], [`MeaningRouter`] | chooses a step |
//! | [`Parallel`] | steps side by side: all, settle, race |
//! | [`Loop`] | steps again and again, [`Until`] it is done; a sequence is a loop of one round |
//! | [`Step::spawn`] | a step in a context of its own |
//!
//! A step takes a JSON value and gives one. Around each stand its hooks, its timeout, its retries and its budget,
//! which draws from all budgets above it. Every finished step is recorded with what it said, changed and spent;
//! a restored execution takes finished steps from the ledger (see [`checkpoint`]).
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::testing::VirtualClock;
//! use harness_core::{Json, Time};
//! use harness_flow::{ExecutionSpec, Flow, FlowRunner, Loop, Step, Until};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let double = Step::run("double", async |n: u64, _| Ok::<_, String>(2 * n));
//! let flow = Flow::new(Loop::new("until large", [double], Until::max_steps(3)))?;
//!
//! let runner = FlowRunner::new(Arc::new(VirtualClock::still(Time(0))));
//! let execution = runner.begin(ExecutionSpec::new("run-1"));
//! assert_eq!(execution.run(&flow, Json::parse("5")?).await?.text(), "40");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod at_step;
pub mod channel;
pub mod checkpoint;
pub(crate) mod context;
mod detached;
mod dispatch;
mod ended;
mod error;
mod execution;
mod flow_tree;
mod hooks;
mod layers;
pub(crate) mod log;
mod meaning;
mod model;
mod parallel;
mod repeat;
mod retry;
pub(crate) mod shared_budget;
mod spawn;
mod step;
mod tool;
mod until;

pub use at_step::{StepShell, StepSubprocess};
pub use context::StepCx;
pub use detached::{Detached, DetachedStatus};
pub use error::FlowError;
pub use execution::{Execution, ExecutionSpec, FlowRunner};
pub use flow_tree::{Flow, FlowFault, FlowFaults};
pub use hooks::{DynStepHooks, FlowEvent, FlowObserver, StepHooks, StepInfo};
pub use meaning::MeaningRouter;
pub use model::{AgentAsk, AgentTurn, DynStepAgent, StepAgent, TurnAgent};
pub use parallel::{Parallel, PathResult};
pub use repeat::{Loop, OnLoopError};
pub use retry::{Backoff, Retry};
pub use spawn::SpawnSpec;
pub use step::{Step, StepKind};
pub use until::{LoopSnapshot, Until, Verdict};

#[doc = include_str!("../../../docs/cookbook/flows.md")]
#[cfg(doctest)]
struct CookbookFlows;
