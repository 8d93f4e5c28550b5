//! Tools of MCP servers that an editor wishes for.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    EnvVariable, McpServer, McpServerSse, McpServerStdio, NewSessionRequest,
};
use harness::core::port::{AgentConfig, AgentSource, PrepareAsk};
use harness::core::testing::VirtualClock;
use harness::core::{Fault, Time, ToolName};
use harness::host::process::Environment;
use harness::runtime::Thread;
use harness_acp::{Host, HostFault, Opened, SessionSetup, Threads, mcp};
use parking_lot::Mutex;

use crate::support::{Reply, Scripted, Step, call, config, threads, with_editor};

/// A server with one tool, which says what the variable `SAYS` holds.
const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
        *'"initialize"'*) reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"harbor","version":"1"}}' ;;
        *'"tools/list"'*) reply '{"tools":[{"name":"tide","description":"The tide","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) reply "{\"content\":[{\"type\":\"text\",\"text\":\"$SAYS\"}]}" ;;
    esac
done
"#;

/// One agent, who may read notes.
struct Reader;

impl AgentSource for Reader {
    async fn prepare(&self, _: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = AgentConfig::new("reader", "");
        config.tools = Some(Arc::from([ToolName::from("read_note")]));
        Ok(config)
    }
}

struct Connecting {
    threads: Threads,
    servers: Mutex<Vec<harness::tools::mcp::McpServer>>,
}

impl Host for Connecting {
    async fn begin(&self, setup: SessionSetup) -> Result<Opened, HostFault> {
        let opened = self.threads.begin(SessionSetup::new(setup.cwd.clone())).await?;
        let clock = Arc::new(VirtualClock::still(Time(0))) as _;
        let path = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
        let servers = mcp::connect(&opened.thread, &setup, &path, &clock).await;
        self.servers.lock().extend(servers);
        Ok(opened)
    }

    async fn close(&self, thread: Thread) {
        thread.close().await;
        let servers = std::mem::take(&mut *self.servers.lock());
        for server in servers {
            server.close().await;
        }
    }
}

#[tokio::test]
async fn tools_of_a_wished_server_are_there_for_agents_and_need_approval() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("harbor.sh"), SERVER).unwrap();
    let harbor = McpServerStdio::new("harbor", "/bin/sh")
        .args(vec!["harbor.sh".to_owned()])
        .env(vec![EnvVariable::new("SAYS", "rising")]);
    let gone = McpServerStdio::new("gone", "/bin/false");
    let servers = vec![
        McpServer::Stdio(gone),
        McpServer::Stdio(harbor),
        McpServer::Sse(McpServerSse::new("old", "http://127.0.0.1:1/sse")),
    ];
    let model = Scripted::new([
        call("c1", "editor-harbor__tide", "{}"),
        call("c2", "read_note", r#"{"path":"a"}"#),
        Step::Say(""),
    ]);
    let mut config = config(&model);
    config.ports.agents = Arc::new(Reader);
    let host = Connecting { threads: threads(config), servers: Mutex::default() };
    with_editor(host, [Reply::Choose("allow_once")], async |editor| {
        let ask = NewSessionRequest::new(folder.path()).mcp_servers(servers);
        let session = editor.cx.send_request(ask).block_task().await.unwrap().session_id;
        editor.prompt(&session, "go").await.unwrap();
        let lines = editor.lines(&session);
        assert!(lines[1].starts_with("asked c1 `editor-harbor__tide`"), "{lines:?}");
        assert!(lines.iter().any(|line| line == "c1 completed `rising`"), "{lines:?}");
        assert!(lines.iter().any(|line| line == "c2 completed `text of a`"), "{lines:?}");
        let offered =
            model.asked.lock()[0].prepared.tools.iter().map(|def| def.name.to_string()).collect::<Vec<_>>();
        assert_eq!(offered, ["read_note", "editor-harbor__tide"]);
    })
    .await;
}
