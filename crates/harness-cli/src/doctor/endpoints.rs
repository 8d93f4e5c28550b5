//! Availability of endpoints that a run would call: those with an API key, and those in the configuration.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::http::reach;
use harness::core::port::{Clock, ModelFaultCode};
use tokio::task::JoinSet;

use super::finding::{Area, Finding, Status};
use crate::args::DoctorArgs;
use crate::env;
use crate::model::keys::Keys;
use crate::model::providers::PROVIDERS;

/// A model endpoint to query.
struct Server {
    name: &'static str,
    title: &'static str,
    address: String,
}

/// Queries all endpoints in parallel.
pub(super) async fn findings(
    keys: &Keys,
    args: &DoctorArgs,
    limit: Duration,
    clock: &Arc<dyn Clock>,
) -> Vec<Finding> {
    let servers = servers(keys, args.base_url.as_deref());
    let mut asked = JoinSet::new();
    for (at, server) in servers.into_iter().enumerate() {
        let clock = Arc::clone(clock);
        asked.spawn(async move { (at, finding(&server, limit, clock.as_ref()).await) });
    }
    let mut findings = asked.join_all().await;
    findings.sort_unstable_by_key(|(at, _)| *at);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

fn servers(keys: &Keys, base_url: Option<&str>) -> Vec<Server> {
    let used = PROVIDERS.iter().filter(|provider| {
        let named = provider.base_url_name.is_some_and(|name| env::text(name).is_some());
        named || (!provider.local && keys.of(provider).is_some())
    });
    let used = used.filter_map(|provider| {
        Some(Server { name: provider.name, title: provider.title, address: provider.address()? })
    });
    let own = base_url.map(|url| Server {
        name: "base_url",
        title: "the endpoint of --base-url",
        address: url.to_owned(),
    });
    used.chain(own).collect()
}

async fn finding(server: &Server, limit: Duration, clock: &dyn Clock) -> Finding {
    let Server { name, title, address } = server;
    let begun = clock.now();
    let reached = reach(address, limit).await;
    let took = clock.now().since(begun);
    match reached {
        Ok(reached) if reached.status >= 500 => {
            let message = format!("{title}: {} answers with HTTP {}", reached.address, reached.status);
            Finding::new(Area::Endpoints, name, Status::Warning, message)
                .fix("the endpoint is reachable but failing; try again later")
        }
        Ok(reached) => {
            let message = format!("{title}: {} answers within {took}", reached.address);
            Finding::new(Area::Endpoints, name, Status::Ok, message)
        }
        Err(fault) => {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the library's list is open")]
            let fix = match fault.code {
                ModelFaultCode::Configuration => "use the form http://localhost:11434/v1",
                _ => "if you need a proxy, set HTTPS_PROXY",
            };
            Finding::new(Area::Endpoints, name, Status::Fault, format!("{title}: {fault}")).fix(fix)
        }
    }
}
