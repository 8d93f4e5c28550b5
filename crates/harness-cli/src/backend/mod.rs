//! Backends that run whole turns: installed agents, relay workers, any program.

mod choose;
mod command;
#[cfg(feature = "relay")]
mod relay;
mod template;

pub(crate) use choose::choose;
