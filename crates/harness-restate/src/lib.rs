//! Threads on a durable execution engine: conversations that live on any of many nodes, where any node may die.
//!
//! The run machine of `harness-core` runs unmodified. Its inputs are journaled by an engine, and a run that loses its
//! process is rebuilt elsewhere from these inputs. [`durable`] holds everything that knows no engine: the driver, the
//! logic of the services, and [`SimEngine`](durable::SimEngine), an engine in the process of a test.
//!
//! Use it when one machine is too small, or when its loss must not stop conversations. A runtime in one process with
//! files is simpler and quicker.

pub mod capacity;
pub mod durable;
#[cfg(feature = "restate")]
pub mod engine;
