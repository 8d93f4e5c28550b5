//! Integration tests of harness-host: real programs, no sleeping, no ambient environment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod ending;
mod running;
#[cfg(target_os = "linux")]
mod sandbox;
mod supervised;
mod support;
