//! Source 001's model adapter, as it is: for hosts that depend on its exact outputs.
//!
//! One request without streaming, its own reading of answers, and one retry after 250 ms. Whatever goes
//! wrong is an answer marked invalid with the source's kind, code and reason, never a fault, except
//! that nobody wants the answer any more. [`ChatModel`](super::ChatModel) is the product's own choice: it
//! streams, keeps text beside calls, sends reasoning back, tells errors inside an answer, and reports
//! cached tokens and cost.

mod body;
mod builder;
mod model;
mod output;
mod prompt;
mod reading;

pub use builder::OpenRouterModelBuilder;
pub use model::OpenRouterModel;
pub use prompt::system_messages;
