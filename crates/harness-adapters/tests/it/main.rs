//! Integration tests of harness-adapters: loopback only, no sleeping, no ambient environment.

mod chat;
mod faults;
mod files;
mod record;
mod request;
mod retry;
mod stream;
mod support;
