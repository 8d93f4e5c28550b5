//! Tools of MCP servers.
//!
//! An [`McpServer`] is started as a program or reached over streamable HTTP. It is a
//! [`ToolRegistry`](harness_core::tool::ToolRegistry) of all its tools. Schemas and results are passed on
//! completely; keys of JSON objects are sorted, and numbers that are neither a 64-bit integer nor a 64-bit
//! float are rounded to the latter. Only tools are supported: prompts, resources, sampling and elicitation
//! of servers are not used, and requests for input are declined.
//!
//! # Bounds
//!
//! | what | bound | at the bound |
//! |---|---|---|
//! | one message of a server | [`MAX_MESSAGE`] | the connection and its calls end |
//! | text of one result | [`McpSpec::max_output`] | start and end are kept, the rest is counted |
//! | data of one image, sound, file | [`MAX_DATA`] | it is omitted with a note |
//! | data of a result (`structuredContent`) | [`McpSpec::max_output`] | it is omitted |
//! | tools of one server | [`MAX_TOOLS`], in at most 100 pages | the server cannot be used |
//! | stderr of a server | 4 KiB | start and end are kept |
//! | handshake, and listing tools | [`McpSpec::connect_timeout`] | the server cannot be used |
//! | one call | [`McpSpec::timeout`] | it is cancelled |

mod answer;
mod child;
mod connection;
mod content;
mod fault;
mod http;
mod names;
mod server;
mod spec;

pub use child::MAX_MESSAGE;
pub use connection::MAX_TOOLS;
pub use content::MAX_DATA;
pub use fault::McpFault;
pub(crate) use names::namespace as namespace_of;
pub use server::McpServer;
pub use spec::{McpHttp, McpSpec, McpStreams, McpTransport};

/// The beginning of a server's text, for errors.
fn short(text: &str) -> String {
    const MOST: usize = 1000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", text.split_at(end).0),
        None => text.to_owned(),
    }
}
