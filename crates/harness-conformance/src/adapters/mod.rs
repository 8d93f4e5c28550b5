//! Vectors of adapters: one file per kind, each over the public API of harness-adapters.
//!
//! The kinds `openrouter-request` and `openrouter-response` hold vectors of several adapters. Their
//! tables ([`openrouter_request`], [`openrouter_response`]) say which code plays which adapter: a new
//! one is a module here and a line in each table.

pub(super) mod cli_runner;
mod clock;
mod execution;
pub(super) mod local_command;
mod model;
pub(super) mod negotiation;
pub(super) mod openrouter_request;
pub(super) mod openrouter_response;
pub(super) mod openrouter_stream;
pub(super) mod relay_message;
mod server;
mod vectors;
