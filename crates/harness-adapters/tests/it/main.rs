//! Integration tests of harness-adapters: loopback only, no sleeping, no ambient environment.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod backend;
mod chat;
mod execution;
mod faults;
mod faults_http;
mod faults_leak;
mod faults_stream;
mod faults_wire;
mod files;
mod fuzz;
#[path = "../../../harness-core/tests/support/fuzz.rs"]
mod fuzz_support;
mod local;
mod messages_faults;
mod messages_request;
mod of_request;
mod options;
mod paused;
mod provider_events;
mod recorded;
mod request;
mod responses_faults;
mod responses_request;
mod retry;
mod spend;
mod stream;
mod support;
mod wrappers;
mod wrappers_stacked;
