//! The Responses API of OpenAI and OpenRouter, and every endpoint that speaks the same protocol.

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

pub use builder::ResponsesModelBuilder;
pub use model::ResponsesModel;
