//! `cargo xtask tidy`: rules of the tree that no compiler checks.
//!
//! [`tree`] reads the files once; [`arrows`], [`deviations`], [`examples`], [`faults`], [`laws`],
//! [`links`], [`manifests`], [`modules`], [`names`], [`order`] and [`text`] are the rules, pure functions from the tree to problems; [`rules`]
//! lists them.
//! `cargo test` applies them too.

mod arrows;
mod deviations;
mod examples;
mod faults;
mod laws;
mod links;
mod manifests;
mod modules;
mod names;
mod order;
mod rules;
mod text;
mod tree;

pub(crate) use rules::{check_links, run};
