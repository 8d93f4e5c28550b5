//! Backends that run whole turns: agents that are installed here, workers behind a relay, any program.

mod choose;
mod command;
#[cfg(feature = "relay")]
mod relay;
mod template;

pub(crate) use choose::choose;
