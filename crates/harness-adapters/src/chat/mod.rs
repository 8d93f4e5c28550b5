//! Chat completions over HTTP: OpenRouter and every endpoint that speaks the same protocol.

mod answer;
mod builder;
mod completion;
mod endpoint;
mod fault;
mod history;
mod model;
mod names;
mod request;
mod sse;
mod stream;
mod wire;

pub use builder::{ChatModelBuilder, ChatTimeouts};
pub use completion::{Completion, CompletionCall, InvalidKind, Verdict};
pub use model::ChatModel;
pub use stream::{Assembler, ReplyLimits, Sink};
pub use wire::{ReportedError, ReportedUsage};
