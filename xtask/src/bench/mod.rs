//! `cargo xtask bench`: measuring this project beside others.
//!
//! [`ours`] runs our benchmark, [`peers`] installs and runs those of other projects, [`table`]
//! makes one table of both; [`descriptor`] does all of it for descriptors, [`session`] for session
//! files and [`adapters`] for streamed answers, against [`bars`]. Figures mean something only against each other, so everything is measured in
//! one go.

mod adapters;
mod bars;
mod descriptor;
mod ours;
mod peers;
mod runner;
mod session;
mod table;

pub(crate) use runner::{Chore, run};
