//! `cargo xtask e2e`: what only the finished program can show.
//!
//! [`checks`] lists the checks, each a module of its own; [`program`] builds the program once, and
//! [`endpoint`] is a scripted model on the loopback interface, [`model_server`] one for local agents.

mod acp;
mod agents;
mod chat;
mod checks;
mod crash;
mod endpoint;
mod first_run;
mod graphs;
mod kill;
mod local_model;
mod mcp;
mod model_server;
mod npm;
mod program;
mod relay;
mod serve;
mod start_up;

pub(crate) use checks::{Options, run};
pub(crate) use model_server::{Options as ServerOptions, serve};
