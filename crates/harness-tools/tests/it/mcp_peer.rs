//! An MCP server in this process that a test speaks for, word by word.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::tool::{ToolCx, ToolOutcome, ToolRegistry};
use harness_tools::mcp::{McpServer, McpSpec};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Where connections of a server arrive.
pub(crate) struct Door(UnboundedReceiver<DuplexStream>);

/// The server's side of one connection. The connection ends when it is dropped.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

/// A server `files`, and the door at which the test waits for its connections.
pub(crate) fn server(configure: impl FnOnce(&mut McpSpec)) -> (McpServer, Door) {
    let (ring, door) = unbounded_channel();
    let mut spec = McpSpec::streams(move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let sent = ring.send(theirs).map_err(|_| std::io::Error::other("nobody is at the door"));
        std::future::ready(sent.map(|()| tokio::io::split(ours)))
    });
    configure(&mut spec);
    (McpServer::new("files", spec), Door(door))
}

/// Runs a test on virtual time.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(test)
}

impl Door {
    /// The next connection.
    pub(crate) async fn open(&mut self) -> Peer {
        let (read, writer) = tokio::io::split(self.0.recv().await.expect("a connection"));
        Peer { lines: BufReader::new(read).lines(), writer }
    }

    /// The next connection, after the handshake.
    pub(crate) async fn greet(&mut self) -> Peer {
        let mut peer = self.open().await;
        let hello = peer.expect("initialize").await;
        peer.reply(
            &hello,
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "test", "version": "1"},
                "instructions": "Read before you write.",
            }),
        )
        .await;
        peer.expect("notifications/initialized").await;
        peer
    }

    /// The next connection, after the handshake and the list of these tools.
    pub(crate) async fn serve(&mut self, tools: Value) -> Peer {
        let mut peer = self.greet().await;
        peer.list(tools).await;
        peer
    }

    /// Whether nobody waits at the door.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

impl Peer {
    /// The next message, which must be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message.get("method"), Some(&json!(method)), "{message}");
        message
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a message, not the end");
        serde_json::from_str(&line).unwrap()
    }

    /// Whether the client has gone.
    pub(crate) async fn is_left(&mut self) -> bool {
        self.lines.next_line().await.ok().flatten().is_none()
    }

    /// Answers a request.
    pub(crate) async fn reply(&mut self, to: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result})).await;
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&mut self, to: &Value, error: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": to["id"], "error": error})).await;
    }

    /// Sends a message.
    pub(crate) async fn say(&mut self, message: &Value) {
        self.print(&format!("{message}\n")).await;
    }

    /// Sends a text as it is.
    pub(crate) async fn print(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a text to a client that may go before it has read it.
    pub(crate) async fn try_print(&mut self, text: &str) {
        let _ = self.writer.write_all(text.as_bytes()).await;
    }

    /// Answers the request for the list.
    pub(crate) async fn list(&mut self, tools: Value) {
        let ask = self.expect("tools/list").await;
        self.reply(&ask, json!({"tools": tools})).await;
    }
}

/// One plain tool.
pub(crate) fn read_file() -> Value {
    json!([{
        "name": "read_file",
        "description": "Reads a file",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }])
}

/// A call of a tool, by its full name.
pub(crate) fn cx(name: &str, arguments: &str) -> ToolCx {
    ToolCx::for_call(Arc::new(ToolCall::new("call-7", name, Json::parse(arguments).unwrap())))
}

/// Calls `read_file`.
pub(crate) async fn read(server: &McpServer) -> ToolOutcome {
    server.call(cx("files__read_file", r#"{"path":"a"}"#)).await.unwrap()
}
