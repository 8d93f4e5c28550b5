//! The APIs of OpenAI: models, chat completions, responses and conversations.
//!
//! A model is the agent graph, or one of its agents. The server runs the tools of the agents; tools of the client are
//! rejected.

mod chat;
pub(crate) mod content;
mod conversations;
pub(crate) mod described;
mod error;
mod events;
mod fields;
mod format;
mod models;
mod responses;
pub(crate) mod usage;
pub(crate) mod verdict;

pub(crate) use error::{OpenAiError, in_their_form};
pub(crate) use fields::TOOLS;
pub(crate) use responses::ResponseStore;

pub(crate) mod routes {
    pub(crate) use super::chat::*;
    pub(crate) use super::conversations::*;
    pub(crate) use super::models::*;
    pub(crate) use super::responses::routes::*;
}
