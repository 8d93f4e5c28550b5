//! Anthropic's Messages API, and every endpoint that speaks the same protocol.

mod answer;
mod builder;
mod conversation;
mod model;
mod reply;
mod request;
mod settings;
#[cfg(test)]
mod tests;
mod wire;

pub use builder::MessagesModelBuilder;
pub use model::MessagesModel;

pub use crate::http::PromptCache;
