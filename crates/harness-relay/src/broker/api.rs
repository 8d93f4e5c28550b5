//! The broker's HTTP interface.

use std::time::Duration;

use harness_core::{Json, JsonObject};
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use reqwest::{Client, Method, Url, redirect};

use super::connection::Connection;
use crate::fault::RelayFault;
use crate::transport::{Delivery, RelayMessage, RelayReceipt, SpawnAgent};

/// Bytes of an answer, at most.
const LONGEST: usize = 4 * 1024 * 1024;

/// Bytes of a refusal's words that are shown.
const SHOWN: usize = 500;

/// The header with the key.
pub(super) const KEY: &str = "x-api-key";

/// Description of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerSession {
    /// Its version, as it reports it; 4.0.40 calls itself 3.0.0.
    pub version: String,
    /// The version of its protocol.
    pub protocol: Option<u64>,
    /// Whether it ends when its lease is not renewed.
    pub ephemeral: bool,
}

/// Calls to a broker.
#[derive(Debug)]
pub(super) struct Api {
    client: Client,
    url: Url,
    key: HeaderValue,
    address: String,
}

/// One call: its name for messages, and what it sends.
struct Call {
    name: &'static str,
    method: Method,
    url: Url,
    body: Option<String>,
}

impl Api {
    pub(super) fn new(connection: &Connection, timeout: Duration) -> Result<Self, RelayFault> {
        // No proxy can reach this machine for us, and no redirect may take the key elsewhere.
        let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).timeout(timeout).build();
        let client = client.map_err(|fault| RelayFault::failed(format!("no HTTP client: {fault}")))?;
        let key = header(connection).map_err(|_| {
            RelayFault::failed("the broker's key cannot be sent: it holds illegal characters")
        })?;
        Ok(Self { client, url: connection.url.clone(), key, address: connection.address() })
    }

    /// Whether the broker answers at all. One that is starting refuses with status 503.
    pub(super) async fn session(&self) -> Result<BrokerSession, RelayFault> {
        let answer = self.get("GET /api/session", &["api", "session"]).await?;
        Ok(BrokerSession {
            version: answer.text("broker_version").unwrap_or_default(),
            protocol: answer.get("protocol_version").and_then(|version| version.to().ok()),
            ephemeral: answer.text("mode").as_deref() == Some("ephemeral"),
        })
    }

    pub(super) async fn renew(&self) -> Result<(), RelayFault> {
        self.post("POST /api/session/renew", &["api", "session", "renew"], "{}".to_owned()).await.map(drop)
    }

    pub(super) async fn agents(&self) -> Result<Vec<String>, RelayFault> {
        let answer = self.get("GET /api/spawned", &["api", "spawned"]).await?;
        Ok(answer.objects("agents").iter().filter_map(|agent| agent.text("name")).collect())
    }

    pub(super) async fn spawn(&self, agent: SpawnAgent) -> Result<(), RelayFault> {
        const CALL: &str = "POST /api/spawn";
        let answer = self.post(CALL, &["api", "spawn"], spawn_body(&agent)).await;
        let not_spawned = |reason| RelayFault::NotSpawned { name: agent.name.clone(), reason };
        match answer {
            Ok(answer) if succeeded(&answer) => Ok(()),
            Ok(answer) => Err(not_spawned(answer.filled_text("error"))),
            Err(RelayFault::Refused { status: 400 | 409 | 500, message, .. }) => {
                Err(not_spawned(Some(message)))
            }
            Err(fault) => Err(fault),
        }
    }

    pub(super) async fn release(&self, name: &str) -> Result<(), RelayFault> {
        const CALL: &str = "DELETE /api/spawned";
        let url = self.path(&["api", "spawned", name])?;
        // A body that is JSON and empty is refused by every version (W54).
        let call = Call { name: CALL, method: Method::DELETE, url, body: Some("{}".to_owned()) };
        self.call(call).await.map(drop)
    }

    pub(super) async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
        const CALL: &str = "POST /api/send";
        let answer = self.post(CALL, &["api", "send"], send_body(&message)).await?;
        if !succeeded(&answer) {
            let problem =
                answer.filled_text("error").unwrap_or_else(|| "it did not take the message".to_owned());
            return Err(RelayFault::Answer { call: CALL, problem });
        }
        let mut receipt =
            RelayReceipt { event_id: answer.filled_text("event_id"), ..RelayReceipt::default() };
        let local = answer.get("local").map(Json::text) == Some("true");
        let delivered = answer.get("delivered").and_then(|count| count.to().ok());
        receipt.delivery = match (local, delivered) {
            (true, Some(count)) => Delivery::Local(count),
            (true, None) => Delivery::Unknown,
            (false, _) => Delivery::Published,
        };
        Ok(receipt)
    }

    /// The number of the newest stored event after `since`; `since` when there is none, `None` when the broker
    /// does not say.
    pub(super) async fn newest(&self, since: u64) -> Result<Option<u64>, RelayFault> {
        const CALL: &str = "GET /api/events/replay";
        let mut url = self.path(&["api", "events", "replay"])?;
        url.set_query(Some(&format!("sinceSeq={since}")));
        let answer = self.call(Call { name: CALL, method: Method::GET, url, body: None }).await?;
        if answer.get("events").is_none() {
            return Ok(None);
        }
        let numbers = answer.objects("events");
        let numbers = numbers.iter().filter_map(|event| event.get("seq")?.to().ok());
        Ok(Some(numbers.max().unwrap_or(since)))
    }

    async fn get(&self, name: &'static str, path: &[&str]) -> Result<JsonObject, RelayFault> {
        self.call(Call { name, method: Method::GET, url: self.path(path)?, body: None }).await
    }

    async fn post(&self, name: &'static str, path: &[&str], body: String) -> Result<JsonObject, RelayFault> {
        self.call(Call { name, method: Method::POST, url: self.path(path)?, body: Some(body) }).await
    }

    /// The URL of a path whose segments may hold anything.
    fn path(&self, segments: &[&str]) -> Result<Url, RelayFault> {
        let mut url = self.url.clone();
        url.set_query(None);
        let mut path =
            url.path_segments_mut().map_err(|()| RelayFault::failed("the broker's URL has no path"))?;
        path.clear().extend(segments);
        drop(path);
        Ok(url)
    }

    async fn call(&self, call: Call) -> Result<JsonObject, RelayFault> {
        let name = call.name;
        let mut request = self.client.request(call.method, call.url).header(KEY, self.key.clone());
        if let Some(body) = call.body {
            request = request.header("content-type", "application/json").body(body);
        }
        let unreachable = |fault: reqwest::Error| RelayFault::Unreachable {
            address: self.address.clone(),
            call: name,
            reason: reason(&fault),
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > LONGEST {
                let problem = format!("it is longer than {LONGEST} bytes");
                return Err(RelayFault::Answer { call: name, problem });
            }
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&bytes);
        let answer = JsonObject::parse(&text);
        if !(200..300).contains(&status) {
            let message = refusal(answer.as_ref(), &text);
            return Err(RelayFault::Refused { call: name, status, message });
        }
        answer.ok_or_else(|| RelayFault::Answer { call: name, problem: "it is not a JSON object".to_owned() })
    }
}

/// The key as a header that is not logged.
pub(super) fn header(connection: &Connection) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut key = HeaderValue::from_str(connection.key.expose())?;
    key.set_sensitive(true);
    Ok(key)
}

fn succeeded(answer: &JsonObject) -> bool {
    answer.get("success").map(Json::text) != Some("false")
}

/// The words of a refusal: `error`, `error.message`, or the text itself, bounded.
fn refusal(answer: Option<&JsonObject>, text: &str) -> String {
    let told = answer.and_then(|answer| {
        let nested = || answer.object("error")?.filled_text("message");
        answer.filled_text("error").or_else(nested).or_else(|| answer.filled_text("message"))
    });
    told.unwrap_or_else(|| text.trim().to_owned()).chars().take(SHOWN).collect()
}

/// Innermost cause of an error, without the URL.
fn reason(fault: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = fault;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if fault.is_timeout() { "it did not answer in time".to_owned() } else { cause.to_string() }
}

fn spawn_body(agent: &SpawnAgent) -> String {
    let text = |text: &String| Json::string(text);
    let list = |list: &Vec<String>| Json::of(list).unwrap_or_default();
    let flag = |flag: bool| Json::of(&flag).unwrap_or_default();
    let mut body = JsonObject::default();
    body.set("name", text(&agent.name));
    body.set("cli", text(&agent.cli));
    body.set("args", list(&agent.args));
    if !agent.channels.is_empty() {
        body.set("channels", list(&agent.channels));
    }
    let optional =
        [("task", &agent.task), ("model", &agent.model), ("cwd", &agent.cwd), ("team", &agent.team)];
    for (key, value) in optional {
        if let Some(value) = value {
            body.set(key, text(value));
        }
    }
    if agent.task.is_none() {
        // Nobody is there to be told how a relay works.
        body.set("skipRelayPrompt", flag(true));
    }
    if let Some(include) = agent.include_workflow_conventions {
        body.set("includeWorkflowConventions", flag(include));
    }
    body.json().text().to_owned()
}

fn send_body(message: &RelayMessage) -> String {
    let mut body = JsonObject::default();
    body.set("to", Json::string(&message.to));
    body.set("from", Json::string(&message.from));
    body.set("text", Json::string(&message.text));
    for (key, value) in [("threadId", &message.thread_id), ("workspaceId", &message.workspace_id)] {
        if let Some(value) = value {
            body.set(key, Json::string(value));
        }
    }
    if let Some(data) = &message.data {
        body.set("data", data.clone());
    }
    body.json().text().to_owned()
}
