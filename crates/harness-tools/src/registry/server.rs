//! Entries of MCP servers.

use std::time::Duration;

use harness_diagnostics::Fields;

use super::entry::{MAX_TIMEOUT, env, max_output, timeout};

/// Keys of an entry with a server.
const KEYS: [&str; 5] = ["mcp", "timeout", "max_output", "requires_approval", "sequential"];

/// Keys below `mcp` of a server that is a program.
const COMMAND_KEYS: [&str; 6] = ["command", "cwd", "env", "env_pass", "connect_timeout", "trust_annotations"];

/// Keys below `mcp` of a server over HTTP.
const URL_KEYS: [&str; 6] =
    ["url", "headers", "headers_env", "bearer_env", "connect_timeout", "trust_annotations"];

/// Entry of a server, as written.
#[derive(Debug)]
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "without the feature it is only checked"))]
pub(crate) struct ServerEntry {
    pub(crate) id: String,
    pub(crate) reach: Reach,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: Option<usize>,
    pub(crate) trust_annotations: bool,
    pub(crate) requires_approval: bool,
    pub(crate) sequential: bool,
}

/// Connection to a server, as written.
#[derive(Debug)]
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "without the feature it is only checked"))]
pub(crate) enum Reach {
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        cwd: Option<String>,
        env: Vec<(String, String)>,
        env_pass: Vec<String>,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
        /// Headers by name, with the variables that have their values.
        headers_env: Vec<(String, String)>,
        bearer_env: Option<String>,
    },
}

/// Reads an entry with the key `mcp`; `None` if it cannot be read at all.
pub(crate) fn read(id: &str, fields: &Fields<'_>) -> Option<ServerEntry> {
    const FORM: &str = "write `command: [PROGRAM, ARGUMENT]` or `url: ADDRESS` below it";
    fields.known(&KEYS);
    let mcp = fields.section("mcp", FORM)?;
    let reach = match (mcp.has("command"), mcp.has("url")) {
        (true, true) => {
            mcp.key_error("url", "`command` and `url` exclude each other", "remove one of them");
            return None;
        }
        (true, false) => {
            mcp.known(&COMMAND_KEYS);
            command(&mcp)
        }
        (false, true) => {
            mcp.known(&URL_KEYS);
            url(&mcp)
        }
        (false, false) => {
            let message = format!("missing `command` or `url` in {}", fields.path_of("mcp"));
            fields.key_error("mcp", message, FORM);
            return None;
        }
    };
    Some(ServerEntry {
        id: id.to_owned(),
        reach,
        connect_timeout: mcp.duration("connect_timeout", MAX_TIMEOUT),
        timeout: timeout(fields),
        max_output: max_output(fields),
        trust_annotations: mcp.flag("trust_annotations").unwrap_or(false),
        requires_approval: fields.flag("requires_approval").unwrap_or(false),
        sequential: fields.flag("sequential").unwrap_or(false),
    })
}

fn command(fields: &Fields<'_>) -> Reach {
    let words = fields.texts("command");
    let is_list = fields.node("command").is_some_and(|node| fields.document().list(node).is_some());
    if is_list && words.first().is_none_or(|program| program.trim().is_empty()) {
        fields.error("command", "no program given", "write it as `[PROGRAM, ARGUMENT]`");
    }
    Reach::Command { words, cwd: fields.text("cwd"), env: env(fields), env_pass: fields.texts("env_pass") }
}

/// Whether the URL has a user name or password.
fn has_credentials(url: &str) -> bool {
    let authority =
        url.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    authority.is_some_and(|authority| authority.contains('@'))
}

fn url(fields: &Fields<'_>) -> Reach {
    let url = fields.text("url").unwrap_or_default();
    if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
        fields.error("url", "not an HTTP address", "start it with `https://`");
    }
    if has_credentials(&url) {
        let hint = "send credentials with `bearer_env` or `headers_env`";
        fields.error("url", "the URL contains a user name or password", hint);
    }
    Reach::Url {
        url,
        headers: fields.pairs("headers"),
        headers_env: fields.pairs("headers_env"),
        bearer_env: fields.text("bearer_env"),
    }
}
