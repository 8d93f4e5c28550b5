//! `cargo xtask e2e`: what only the finished program can show.
//!
//! [`program`] builds it once, each other module is one check, listed in [`checks`].

mod checks;
mod first_run;
mod program;
mod start_up;

pub(crate) use checks::{Options, run};
