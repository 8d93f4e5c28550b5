//! Flows: programs of steps that survive a crash.
//!
//! | step | action |
//! |---|---|
//! | [`Step::run`] | runs code |
//! | [`Step::model`], [`Step::model_json`] | runs a model turn with its tools |
//! | [`Step::tool`] | calls a tool behind gates |
//! | [`Step::branch`], [`MeaningRouter`] | chooses a step |
//! | [`Parallel`] | runs steps concurrently: all, settle, race |
//! | [`Loop`] | repeats steps [`Until`] a predicate stops it; a sequence is a loop of one round |
//! | [`Step::spawn`] | runs a step in a child context |
//!
//! A step maps a JSON value to a JSON value, within its hooks, timeout, retries and budget, which is part of all
//! enclosing budgets. Every finished step is recorded with output, messages, state changes and usage; a restored
//! execution takes finished steps from the ledger (see [`checkpoint`]).
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
//! let execution = runner.start(ExecutionSpec::new("run-1"));
//! assert_eq!(execution.run(&flow, Json::parse("5")?).await?.text(), "40");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

pub use context::StepCx;
pub use detached::Detached;
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
