//! Vectors of adapters: one file per kind, each over the public API of harness-adapters.
//!
//! The kinds `openrouter-request` and `openrouter-response` hold vectors of several adapters: a new one is a word
//! ([`words::ChatAdapter`]) and what plays it.

pub(super) mod cli_runner;
mod clock;
mod execution;
pub(super) mod local_command;
mod model;
pub(super) mod negotiation;
pub(super) mod openrouter_request;
pub(super) mod openrouter_response;
pub(super) mod openrouter_stream;
mod recorder;
pub(super) mod relay_message;
mod server;
mod vectors;
mod words;
