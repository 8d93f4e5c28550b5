//! Chat completions over HTTP: OpenRouter and every endpoint that speaks the same protocol.

mod answer;
mod builder;
mod completion;
mod history;
mod model;
mod reply;
mod request;
mod wire;

pub use builder::ChatModelBuilder;
pub use completion::{Completion, CompletionCall, InvalidKind, Verdict};
pub use model::ChatModel;
pub use reply::Assembler;

pub use crate::http::{
    PromptCache, ReplyLimits, ReplyTimeouts as ChatTimeouts, ReportedError, ReportedUsage, Sink,
};
