//! One POST and its whole reply.

use std::time::Duration;

use harness_core::cancel::Cancel;
use harness_core::{Json, Millis, ModelName};
use tokio::time::timeout;

use crate::chat::Completion;
use crate::execution::object;
use crate::http::fault::retry_after;
use crate::http::service::Service;
use crate::http::setup::{Protocol, Setup};
use crate::{AdapterError, ApiKey};

pub(super) const BASE_URL: &str = "https://openrouter.ai/api/v1/chat/completions";

/// Characters of an endpoint's own words that an error shows.
const SHOWN: usize = 2_000;

static PROTOCOL: Protocol = Protocol {
    endpoint: "an OpenAI-compatible endpoint",
    reply: "chat completion",
    path: "/chat/completions",
    reserved: &[],
    key: ("authorization", "Bearer "),
    headers: &[],
    think: |_, _| {},
};

/// An endpoint that is asked with one request at a time.
pub(super) struct Direct {
    service: Service,
    pub(super) timeout: Duration,
    key: Option<ApiKey>,
}

/// A whole reply.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) retry_after: Option<Millis>,
    /// The body as JSON, or why it is none.
    pub(super) body: Result<Json, String>,
}

/// Why there is no whole reply.
pub(super) enum Broken {
    Timeout,
    Cancelled,
    /// The connection could not be made, broke, or brought too much.
    Transport(String),
}

impl Direct {
    pub(super) fn new(
        base_url: String,
        model: ModelName,
        key: Option<ApiKey>,
        timeout: Duration,
    ) -> Result<Self, AdapterError> {
        let key = key.filter(|key| !key.is_empty());
        let mut setup = Setup::compatible(&PROTOCOL, base_url, model);
        setup.key.clone_from(&key);
        Ok(Self { service: setup.build()?, timeout, key })
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The model, then the messages as role and content, then what else there is.
    pub(super) fn body<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a str, &'a str)>,
        more: impl IntoIterator<Item = (&'a str, Json)>,
    ) -> String {
        let message =
            |(role, content)| object([("role", Json::string(role)), ("content", Json::string(content))]);
        let messages: Vec<_> = messages.into_iter().map(message).collect();
        let messages = Json::of(&messages).unwrap_or_else(|_| Json::null());
        let head = [("model", Json::string(self.service.model.as_str())), ("messages", messages)];
        object(head.into_iter().chain(more)).text().to_owned()
    }

    /// Sends `body` and reads the reply to its end.
    pub(super) async fn post(&self, body: String, cancel: &Cancel) -> Result<Reply, Broken> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Broken::Cancelled),
            reply = timeout(self.timeout, Box::pin(self.exchange(body))) => {
                reply.unwrap_or(Err(Broken::Timeout))
            }
        }
    }

    async fn exchange(&self, body: String) -> Result<Reply, Broken> {
        let request = self.service.client.post(self.service.endpoint.url().clone()).body(body);
        let mut response = request.send().await.map_err(|error| self.broken(error))?;
        let status = response.status();
        let retry_after =
            retry_after(|name| response.headers().get(name).and_then(|value| value.to_str().ok()));
        let limits = &self.service.limits;
        let limit = if status.is_success() { limits.body } else { limits.error_body };
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                // What an error page was about is known from its status.
                Err(_) if !status.is_success() => break,
                Err(error) => return Err(self.broken(error)),
            }
            if bytes.len() > limit {
                if status.is_success() {
                    let text = format!("OpenRouter sent more than {limit} bytes");
                    return Err(Broken::Transport(text));
                }
                bytes.truncate(limit);
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let body = Json::parse(text.trim_start_matches('\u{feff}'));
        let body = body
            .map_err(|error| error.to_string())
            .and_then(|json| if json.is_null() { Err("the reply is null".to_owned()) } else { Ok(json) });
        Ok(Reply { status: status.as_u16(), retry_after, body })
    }

    fn broken(&self, error: reqwest::Error) -> Broken {
        Broken::Transport(self.service.faults.transport(&error.without_url()).message)
    }

    /// What a document says, whatever its shape.
    pub(super) fn read(&self, body: &Json) -> Result<Completion, AdapterError> {
        let document = if body.is_object() { body.text() } else { "{}" };
        Completion::from_document(document, self.service.limits.clone(), &mut |_| {})
    }

    /// Foreign text without the key in it.
    pub(super) fn without_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| text.replace(key.expose(), "[key]"))
    }

    /// Foreign text as it may be shown: without the key, not endless.
    pub(super) fn shown(&self, text: &str) -> String {
        let clean = self.without_key(text);
        match clean.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
            None => clean,
        }
    }
}

/// An error of the endpoint: what stands under `error` of its reply.
#[derive(Default)]
pub(super) struct Said {
    pub(super) message: Option<String>,
    pub(super) code: Option<Json>,
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the body says under `error`.
    pub(super) fn said(&self) -> Said {
        let last = |object: &Json, key: &str| -> Option<Json> {
            object.entries().ok()?.into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
        };
        let Some(error) = self.body.as_ref().ok().and_then(|body| last(body, "error")) else {
            return Said::default();
        };
        let message = last(&error, "message").and_then(|message| message.to::<String>().ok());
        Said {
            message: message.filter(|message| !message.is_empty()),
            code: last(&error, "code").filter(|code| !code.is_null()),
        }
    }

    /// Whether the same request may well work later: the server failed, was busy, or has too much paid work
    /// in flight.
    pub(super) fn retryable(&self) -> bool {
        let in_flight = || {
            let body = self.body.as_ref().map(Json::text).unwrap_or_default();
            self.status == 402 && body.contains("openrouter_in_flight_budget")
        };
        matches!(self.status, 408 | 429 | 500..) || in_flight()
    }
}
