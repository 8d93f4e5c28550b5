//! Anthropic's Messages API, and every endpoint that speaks the same protocol.

mod answer;
mod builder;
mod conversation;
mod model;
mod request;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod wire;

pub use builder::{MessagesModelBuilder, PromptCache};
pub use model::MessagesModel;
