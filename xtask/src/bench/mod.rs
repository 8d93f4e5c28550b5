//! `cargo xtask bench`: measuring this project beside others.
//!
//! [`ours`] runs our benchmark, [`mod@peers`] installs and runs those of other projects, [`table`]
//! makes one table of both; [`descriptor`] does all of it for descriptors, [`session`] for session
//! files, [`adapters`] for streamed answers and [`threads`] for threads, against [`bars`]. Figures
//! mean something only against each other, so everything is measured in one go.

mod adapters;
mod bars;
mod descriptor;
mod ours;
mod peers;
mod runner;
mod session;
mod table;
mod threads;

pub(crate) use runner::{Chore, peers, run};
