//! `cargo xtask ci`: everything that a change must pass.
//!
//! [`steps`] lists the steps in their order, those of the gate and those of `cargo xtask nightly`; [`plan`] runs them and
//! reports, [`features`] derives the builds of single crates and features, [`readme`]
//! tries the first command that a reader of the README types.

mod features;
mod plan;
mod readme;
mod steps;

pub(crate) use plan::{Options, run, run_nightly};
