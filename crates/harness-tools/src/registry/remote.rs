//! MCP servers of a registry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use harness_core::port::Clock;
use harness_diagnostics::{Diagnostic, Fields, suggest};
use harness_host::process::{Environment, ProgramSpec};

use super::bound::Registry;
use super::command::{folder_of, program_of, rooted};
use super::lack::program_problem;
use super::server::{Reach, ServerEntry};
use crate::mcp::{McpServer, McpSpec, McpTransport, namespace_of};
use crate::source::Binding;

/// A server with the parts of its entry that problems refer to.
pub(super) struct Remote {
    server: McpServer,
    /// Variables that are not set, by the key below `mcp` that names them.
    missing: Vec<(&'static str, String)>,
}

impl Remote {
    /// Creates the server of an entry; nothing is started yet.
    pub(super) fn new(entry: ServerEntry, file: &Path, environment: &Environment) -> Self {
        let mut missing = Vec::new();
        let mut spec = spec_of(entry.reach, file, environment, &mut missing);
        spec.connect_timeout = entry.connect_timeout.unwrap_or(spec.connect_timeout);
        spec.timeout = entry.timeout.unwrap_or(spec.timeout);
        spec.max_output = entry.max_output.unwrap_or(spec.max_output);
        spec.trust_annotations = entry.trust_annotations;
        spec.requires_approval = entry.requires_approval;
        spec.sequential = entry.sequential;
        Self { server: McpServer::new(entry.id, spec), missing }
    }

    pub(super) fn server(&self) -> &McpServer {
        &self.server
    }

    pub(super) fn set_clock(&mut self, clock: &Arc<dyn Clock>) {
        self.server = self.server.with_clock(Arc::clone(clock));
    }

    /// Binding of a tool of the server; `*` are all.
    pub(super) fn binding(&self, tool: &str) -> Binding {
        let source = self.server.source();
        if tool == "*" {
            Binding::All(source)
        } else {
            Binding::One { source, name: self.server.name_of(tool) }
        }
    }
}

fn spec_of(
    reach: Reach,
    file: &Path,
    environment: &Environment,
    missing: &mut Vec<(&'static str, String)>,
) -> McpSpec {
    let mut variable = |key, name: &str| {
        let value = environment.get(name);
        if value.is_none() {
            missing.push((key, name.to_owned()));
        }
        value.map(|value| value.to_string_lossy().into_owned())
    };
    match reach {
        Reach::Command { words, cwd, env, env_pass } => {
            let folder = folder_of(file);
            let mut words = words.into_iter();
            let program = program_of(&words.next().unwrap_or_default(), folder);
            for name in &env_pass {
                variable("env_pass", name);
            }
            let mut program = ProgramSpec::new(program)
                .args(words)
                .cwd(rooted(&folder.join(cwd.unwrap_or_default())))
                .pass(environment, env_pass.iter().map(String::as_str));
            program.env = env.into_iter().collect();
            McpSpec::stdio(program)
        }
        Reach::Url { url, headers, headers_env, bearer_env } => {
            let mut absent = Vec::new();
            let mut spec =
                headers.into_iter().fold(McpSpec::http(url), |spec, (name, value)| spec.header(name, value));
            for (header, name) in headers_env {
                match variable("headers_env", &name) {
                    Some(value) => spec = spec.header(header, value),
                    None => absent.push(name),
                }
            }
            if let Some(name) = bearer_env {
                match variable("bearer_env", &name) {
                    Some(token) => spec = spec.header("Authorization", format!("Bearer {token}")),
                    None => absent.push(name),
                }
            }
            if let McpTransport::Http(http) = &mut spec.transport {
                http.missing = absent;
            }
            spec
        }
    }
}

/// Reports servers whose tools would have the same prefix.
pub(super) fn check_namespaces<'a>(ids: impl Iterator<Item = &'a String>, tools: &Fields<'_>) {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for id in ids {
        if let Some(first) = owners.insert(namespace_of(id), id) {
            let message = format!("tool names of `{id}` would have the same prefix as those of `{first}`");
            tools.key_error(id, message, "choose a name that differs in letters or digits");
        }
    }
}

impl Registry {
    /// MCP servers, sorted by id.
    pub fn servers(&self) -> impl Iterator<Item = &McpServer> {
        self.servers.values().map(Remote::server)
    }

    /// The server and the tool of a target `SERVER.TOOL`. If two ids match, the longer one is used.
    pub(super) fn remote<'a>(&self, target: &'a str) -> Option<(&Remote, &'a str)> {
        let fits = |(id, remote)| {
            let tool = target.strip_prefix(id as &String)?.strip_prefix('.')?;
            (!tool.is_empty()).then_some((remote, tool))
        };
        self.servers.iter().filter_map(fits).min_by_key(|(_, tool)| tool.len())
    }

    /// Connects to the servers that these targets need, and reports servers that cannot be used and tools
    /// that they do not have.
    pub async fn try_servers<'a>(&self, targets: impl IntoIterator<Item = &'a str>) -> Vec<Diagnostic> {
        let mut asked: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for target in targets {
            if let Some((remote, tool)) = self.remote(target) {
                asked.entry(remote.server.id()).or_default().push(tool);
            }
        }
        let trials = asked.into_iter().filter_map(|(id, tools)| Some((self.servers.get(id)?, tools)));
        join_all(trials.map(|(remote, tools)| self.try_server(remote, tools))).await.concat()
    }

    async fn try_server(&self, remote: &Remote, tools: Vec<&str>) -> Vec<Diagnostic> {
        let server = &remote.server;
        let defs = match server.tools().await {
            Ok(defs) => defs,
            Err(error) => {
                let hint = error.hint().unwrap_or_else(|| "check the documentation of the server".to_owned());
                return vec![self.problem_at(server.id(), &["mcp"], error.to_string(), &hint)];
            }
        };
        let known: Vec<&str> =
            defs.iter().filter_map(|def| def.name.as_str().strip_prefix(server.namespace())).collect();
        let missing = |tool: &&&str| **tool != "*" && defs.iter().all(|def| def.name != server.name_of(tool));
        let problem = |tool: &&str| {
            let hint = suggest::did_you_mean(tool, known.iter().copied())
                .unwrap_or_else(|| format!("available: {}", suggest::list(&known, "and")));
            self.problem_at(server.id(), &["mcp"], format!("the MCP server has no tool `{tool}`"), &hint)
        };
        tools.iter().filter(missing).map(problem).collect()
    }

    pub(super) fn with_problems_of_servers(&self, mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for (id, remote) in &self.servers {
            if let McpTransport::Stdio(program) = &remote.server.spec().transport {
                if let Some(cwd) = program.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
                    let problem = format!("directory `{}` does not exist", cwd.display());
                    let hint = "create it, or correct `cwd`";
                    problems.push(self.problem_at(id, &["mcp", "cwd"], problem, hint));
                }
                if let Some((problem, hint)) = program_problem(program) {
                    problems.push(self.problem_at(id, &["mcp", "command"], problem, hint));
                }
            }
            for (key, name) in &remote.missing {
                let problem = format!("the variable `{name}` is not set");
                let hint = format!("set it, or remove it from `{key}`");
                problems.push(self.problem_at(id, &["mcp", key], problem, &hint));
            }
        }
        problems
    }
}
