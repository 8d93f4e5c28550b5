//! `cargo xtask ci`: everything that a change must pass.
//!
//! [`steps`] lists the steps in their order, [`plan`] runs them and reports, [`counts`] sums the
//! results of tests, [`alone`] derives the builds of single crates and features, [`readme`] tries
//! the first command that a reader of the README types.

mod alone;
mod counts;
mod plan;
mod readme;
mod steps;

pub(crate) use plan::{Options, run};
