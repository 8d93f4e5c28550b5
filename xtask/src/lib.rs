//! What the project's chores share: where things are, other programs, the clock, faults.

pub mod fault;
pub mod process;
pub mod repo;
pub mod stopwatch;
