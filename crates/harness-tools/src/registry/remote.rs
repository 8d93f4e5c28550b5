//! The servers of a registry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use harness_core::port::Clock;
use harness_host::process::{Environment, PASSED};

use super::bound::{Registry, folder_of, program_of, rooted, tools_path};
use super::entry::child;
use super::faults::Faults;
use super::lack::program_problem;
use super::server::{Reach, ServerEntry};
use crate::error::Problem;
use crate::mcp::{McpServer, McpSpec, McpTransport, namespace_of};
use crate::near::near;
use crate::source::{Binding, all};

/// A server and what of its entry problems are told by.
pub(super) struct Remote {
    server: McpServer,
    /// The keys below `mcp` that name a variable, and the variable, where that is not set.
    missing: Vec<(&'static str, String)>,
}

impl Remote {
    /// The server of an entry; nothing is started yet.
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

    /// What a tool of the server stands for; `*` are all.
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
            let mut spec =
                McpSpec::stdio(program).args(words).cwd(rooted(&folder.join(cwd.unwrap_or_default())));
            for name in &env_pass {
                variable("env_pass", name);
            }
            let passed = PASSED.into_iter().chain(env_pass.iter().map(String::as_str));
            if let McpTransport::Stdio(command) = &mut spec.transport {
                command.env = environment.share(passed);
            }
            env.into_iter().fold(spec, |spec, (name, value)| spec.env(name, value))
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

/// Names of tools are told apart by their namespaces.
pub(super) fn check_namespaces<'a>(ids: impl Iterator<Item = &'a String>, faults: &mut Faults<'_>) {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for id in ids {
        if let Some(first) = owners.insert(namespace_of(id), id) {
            let problem = format!("the names of its tools would begin like those of `{first}`");
            let hint = "call one of them by a name that differs in letters or digits".to_owned();
            faults.key(&child(&tools_path(), id), problem, Some(hint));
        }
    }
}

impl Registry {
    /// The MCP servers, by their ids.
    pub fn servers(&self) -> impl Iterator<Item = &McpServer> {
        self.servers.values().map(Remote::server)
    }

    /// The server and the tool of a target `SERVER.TOOL`. Of two servers whose ids fit, the longer counts.
    pub(super) fn remote<'a>(&self, target: &'a str) -> Option<(&Remote, &'a str)> {
        let fits = |(id, remote)| {
            let tool = target.strip_prefix(id as &String)?.strip_prefix('.')?;
            (!tool.is_empty()).then_some((remote, tool))
        };
        self.servers.iter().filter_map(fits).min_by_key(|(_, tool)| tool.len())
    }

    /// Connects to the servers that these targets need, and says which cannot be used and which tools
    /// they do not have.
    pub async fn try_servers<'a>(&self, targets: impl IntoIterator<Item = &'a str>) -> Vec<Problem> {
        let mut asked: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for target in targets {
            if let Some((remote, tool)) = self.remote(target) {
                asked.entry(remote.server.id()).or_default().push(tool);
            }
        }
        let trials = asked.into_iter().filter_map(|(id, tools)| Some((self.servers.get(id)?, tools)));
        let found =
            all(trials.map(|(remote, tools)| Box::pin(self.try_server(remote, tools)) as _).collect());
        found.await.concat()
    }

    async fn try_server(&self, remote: &Remote, tools: Vec<&str>) -> Vec<Problem> {
        let server = &remote.server;
        let defs = match server.tools().await {
            Ok(defs) => defs,
            Err(error) => {
                let hint = error.hint().unwrap_or_else(|| "see what the server needs".to_owned());
                return vec![self.problem_at(server.id(), &["mcp"], error.to_string(), &hint)];
            }
        };
        let known: Vec<&str> =
            defs.iter().filter_map(|def| def.name.as_str().strip_prefix(server.namespace())).collect();
        let missing = |tool: &&&str| **tool != "*" && defs.iter().all(|def| def.name != server.name_of(tool));
        let problem = |tool: &&str| {
            let near = near(tool, known.iter().copied());
            let near = if near.is_empty() { known.clone() } else { near };
            let hint = format!("it has {}", crate::near::list(&near, "and"));
            self.problem_at(server.id(), &["mcp"], format!("the MCP server has no tool `{tool}`"), &hint)
        };
        tools.iter().filter(missing).map(problem).collect()
    }

    pub(super) fn with_problems_of_servers(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        for (id, remote) in &self.servers {
            if let McpTransport::Stdio(command) = &remote.server.spec().transport {
                if let Some(cwd) = command.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
                    let problem = format!("its folder {} does not exist", cwd.display());
                    problems.push(self.problem_at(
                        id,
                        &["mcp", "cwd"],
                        problem,
                        "create it, or correct `cwd`",
                    ));
                }
                if let Some((problem, hint)) = program_problem(&command.program, &command.env) {
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
