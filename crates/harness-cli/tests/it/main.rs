//! The program, from the outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod acp;
mod approval;
mod asked_model;
mod assistant;
mod backends;
mod chat;
mod cookbook;
mod corpus;
mod decisions;
mod defaults;
mod descriptors;
mod dev;
mod doctor;
mod door;
mod endings;
mod error_page;
mod event_page;
mod event_schema;
mod example;
mod faults;
mod files;
mod hostile;
mod json;
mod limits;
mod manners;
mod model_endpoints;
mod models;
mod new;
mod orphans;
mod otlp;
mod outcomes;
mod questions;
mod record;
mod reference;
mod resume;
mod run;
mod run_records;
mod secrets;
mod serve;
mod session;
mod signal;
mod skills;
mod strict;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the other test program uses the rest")]
mod support;
mod team;
mod terminal;
mod tool_faults;
mod tools;
mod until;
mod view;
mod watched;
