//! An MCP server of the file.

use std::time::Duration;

use super::entry::{Fields, child, known_keys};
use super::faults::Faults;
use super::yaml::{Node, Step};

/// The keys of an entry with a server.
const KEYS: [&str; 5] = ["mcp", "timeout", "max_output", "requires_approval", "sequential"];

/// The keys below `mcp` of a server that is a program.
const COMMAND_KEYS: [&str; 6] = ["command", "cwd", "env", "env_pass", "connect_timeout", "trust_annotations"];

/// The keys below `mcp` of a server over HTTP.
const URL_KEYS: [&str; 6] =
    ["url", "headers", "headers_env", "bearer_env", "connect_timeout", "trust_annotations"];

/// A server as the file has it.
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

/// How it is reached.
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
        /// Headers by name, and the variables that they come from.
        headers_env: Vec<(String, String)>,
        bearer_env: Option<String>,
    },
}

/// Reads the entry at `path`. What is wrong in it goes to `faults`; `None` if it cannot be read at all.
pub(crate) fn read(
    id: &str,
    entries: &[(String, Node)],
    path: &[Step],
    faults: &mut Faults<'_>,
) -> Option<ServerEntry> {
    for (key, _) in entries.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
        let problem = format!("unknown key `{key}` beside `mcp`");
        faults.key(&child(path, key), problem, Some(known_keys(key, &KEYS)));
    }
    let below = child(path, "mcp");
    let node = entries.iter().find(|(key, _)| key == "mcp").map(|(_, node)| node)?;
    let Some(mcp) = node.as_map() else {
        let hint = "write `command: [PROGRAM, ARGUMENT]` or `url: ADDRESS` below it".to_owned();
        faults.value(&below, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return None;
    };
    let has = |wanted: &str| mcp.iter().any(|(key, _)| key == wanted);
    let keys = if has("url") && !has("command") { &URL_KEYS } else { &COMMAND_KEYS };
    for (key, _) in mcp.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
        let (problem, hint) = if key == "url" {
            ("`command` and `url` exclude each other".to_owned(), "remove one of them".to_owned())
        } else {
            (format!("unknown key `{key}`"), known_keys(key, keys))
        };
        faults.key(&child(&below, key), problem, Some(hint));
    }
    let mut fields = Fields::new(mcp, &below, faults);
    let reach = if has("command") {
        command(&mut fields)
    } else if has("url") {
        url(&mut fields)
    } else {
        let hint = "write `command: [PROGRAM, ARGUMENT]` or `url: ADDRESS`".to_owned();
        faults.key(&below, "neither `command` nor `url` says how the server is reached", Some(hint));
        return None;
    };
    let (connect_timeout, trust_annotations) =
        (fields.span("connect_timeout"), fields.flag("trust_annotations", false));
    let mut fields = Fields::new(entries, path, faults);
    Some(ServerEntry {
        id: id.to_owned(),
        reach,
        connect_timeout,
        timeout: fields.span("timeout"),
        max_output: fields.max_output(),
        trust_annotations,
        requires_approval: fields.flag("requires_approval", false),
        sequential: fields.flag("sequential", false),
    })
}

fn command(fields: &mut Fields<'_, '_, '_>) -> Reach {
    let words = fields.texts("command");
    if fields.get("command").is_some_and(|node| node.as_list().is_some())
        && words.first().is_none_or(|program| program.trim().is_empty())
    {
        fields.fault("command", "it names no program", "write it as `[PROGRAM, ARGUMENT]`");
    }
    Reach::Command { words, cwd: fields.text("cwd"), env: fields.env(), env_pass: fields.texts("env_pass") }
}

/// Whether something stands before the host.
fn has_credentials(url: &str) -> bool {
    let authority =
        url.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    authority.is_some_and(|authority| authority.contains('@'))
}

fn url(fields: &mut Fields<'_, '_, '_>) -> Reach {
    let url = fields.text("url").unwrap_or_default();
    if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
        fields.fault("url", "it is no address over HTTP", "begin it with `https://`");
    }
    if has_credentials(&url) {
        fields.fault(
            "url",
            "it holds a user name or password",
            "send credentials with `bearer_env` or `headers_env`",
        );
    }
    Reach::Url {
        url,
        headers: fields.pairs("headers"),
        headers_env: fields.pairs("headers_env"),
        bearer_env: fields.text("bearer_env"),
    }
}
