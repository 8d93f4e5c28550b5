//! Local agents and their versions.

use harness::adapters::local::{Found, LocalAgent, Probe, probe};
use tokio::task::JoinSet;

use super::finding::{Area, Finding, Status};
use crate::env;

/// Queries all versions in parallel. bash is skipped: it has no model.
pub(super) async fn findings() -> Vec<Finding> {
    let surroundings = env::surroundings();
    let agents = LocalAgent::ALL.into_iter().filter(|agent| *agent != LocalAgent::Bash);
    let mut asked = JoinSet::new();
    for agent in agents {
        let program = agent.program(&surroundings);
        asked.spawn(async move { probe(agent, &program).await });
    }
    let mut probes = asked.join_all().await;
    probes.sort_unstable_by_key(|probe| probe.agent);
    probes.iter().map(finding).collect()
}

fn finding(probe: &Probe) -> Finding {
    let agent = probe.agent;
    let path = probe.path.as_ref().map(|path| format!(", {}", path.display())).unwrap_or_default();
    let (status, message) = match &probe.found {
        Found::Ready(version) => (Status::Ok, format!("{agent} {version}{path}")),
        Found::TooOld(version) => {
            (Status::Warning, format!("{agent} {version} is older than {}{path}", agent.minimum()))
        }
        Found::Missing => (Status::Absent, format!("{agent} is not installed")),
        Found::Unclear(why) => {
            (Status::Warning, format!("cannot determine the version of {agent}: {why}{path}"))
        }
        _ => (Status::Warning, format!("cannot check {agent}{path}")),
    };
    let finding = Finding::new(Area::Agents, agent.id(), status, message);
    match probe.hint() {
        Some(hint) => finding.fix(hint),
        None => finding,
    }
}
