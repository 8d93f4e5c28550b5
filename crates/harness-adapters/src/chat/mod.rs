//! Chat completions over HTTP: OpenRouter and every endpoint that speaks the same protocol.

mod answer;
mod builder;
mod common;
mod completion;
mod history;
mod model;
mod request;
mod stream;
mod wire;

pub use builder::ChatModelBuilder;
pub use completion::{Completion, CompletionCall, InvalidKind, Verdict};
pub use model::ChatModel;
pub use stream::Assembler;
pub use wire::ReportedUsage;

pub use crate::http::{PromptCache, ReplyLimits, ReplyTimeouts as ChatTimeouts, ReportedError, Sink};
