//! One request and its reply: sent, read to its end or to its failure, never longer than wanted.

use harness_core::ToolName;
use harness_core::port::{DeltaPart, Deltas, ModelFault};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::Sink;
use super::fault::{ErrorReply, Faults, retry_after};
use super::names::ToolNames;
use super::service::Service;
use crate::AdapterError;

/// An answer that is being put together; each protocol has its own.
pub(crate) trait Answer: Send {
    /// Takes the next bytes of an event stream, cut anywhere.
    fn feed(&mut self, bytes: &[u8], parts: Sink<'_>) -> Result<(), AdapterError>;

    /// Takes a reply that is one JSON document instead of a stream.
    fn document(&mut self, text: &str, parts: Sink<'_>) -> Result<(), AdapterError>;

    /// Whether nothing of interest can follow: the end was announced, or the endpoint reported an error.
    fn is_over(&self) -> bool;

    /// Whether the answer can be used as it is, so that a broken connection changes nothing.
    fn is_whole(&self) -> bool;
}

/// One request and what has arrived of its answer.
pub(crate) struct Exchange<'a, A> {
    pub(crate) service: &'a Service,
    /// The header with the request's own key.
    pub(crate) key: Option<(HeaderName, HeaderValue)>,
    pub(crate) faults: &'a Faults,
    pub(crate) deltas: &'a dyn Deltas,
    pub(crate) names: &'a ToolNames,
    pub(crate) answer: &'a mut A,
}

impl<A: Answer> Exchange<'_, A> {
    /// Sends the request and reads the reply.
    pub(crate) async fn run(&mut self, body: String) -> Result<(), ModelFault> {
        let mut request = self.service.client.post(self.service.endpoint.url().clone()).body(body);
        if let Some((name, value)) = self.key.take() {
            request = request.header(name, value);
        }
        let sent = timeout(self.service.timeouts.idle, Box::pin(request.send())).await;
        let mut response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.faults.transport(&error.without_url())),
            Err(_) => return Err(self.idle("did not begin an answer")),
        };
        if !response.status().is_success() {
            return Err(self.error_reply(response).await);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if header(CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(self.faults.protocol("a compressed reply, which was not asked for"));
        }
        if header(CONTENT_TYPE).is_some_and(|kind| kind.to_ascii_lowercase().contains("text/event-stream")) {
            return self.stream(&mut response).await;
        }
        self.document(response).await
    }

    /// Reads a stream to its end. An answer that is whole, or failed, does not wait for the formal end:
    /// some endpoints never send it, and what happens to the connection then changes nothing.
    async fn stream(&mut self, response: &mut reqwest::Response) -> Result<(), ModelFault> {
        loop {
            match self.next(response).await {
                Ok(Some(bytes)) => self.feed(&bytes)?,
                Ok(None) => return Ok(()),
                Err(_) if self.answer.is_whole() => return Ok(()),
                Err(fault) => return Err(fault),
            }
            if self.answer.is_over() {
                return Ok(());
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ModelFault> {
        let (deltas, names) = (self.deltas, self.names);
        let fed = self.answer.feed(bytes, &mut |part| deltas.part(renamed(part, names)));
        fed.map_err(|error| self.faults.too_large(&error))
    }

    async fn next(&self, response: &mut reqwest::Response) -> Result<Option<bytes::Bytes>, ModelFault> {
        match timeout(self.service.timeouts.idle, response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(self.faults.transport(&error.without_url())),
            Err(_) => Err(self.idle("sent nothing more")),
        }
    }

    fn idle(&self, what: &str) -> ModelFault {
        self.faults.timeout(what, self.service.timeouts.idle.into())
    }

    /// A reply that does not call itself an event stream: usually one JSON document, sometimes a stream
    /// under the wrong name.
    async fn document(&mut self, mut response: reqwest::Response) -> Result<(), ModelFault> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next(&mut response).await? {
            body.extend_from_slice(&bytes);
            if body.len() > self.service.limits.body {
                let limit = self.service.limits.body;
                let error = AdapterError::TooLarge { what: "reply", limit, unit: "bytes" };
                return Err(self.faults.too_large(&error));
            }
        }
        let text = String::from_utf8_lossy(&body);
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with("data:") || start.starts_with(':') || start.starts_with("event:") {
            return self.feed(&body);
        }
        if !start.starts_with('{') || harness_core::Json::parse(start).is_err() {
            let is_cut = serde_json::from_str::<IgnoredAny>(start).is_err_and(|error| error.is_eof());
            return Err(if start.starts_with('{') && is_cut {
                self.faults.cut()
            } else {
                self.faults.protocol("a reply that is neither JSON nor an event stream")
            });
        }
        let (deltas, names) = (self.deltas, self.names);
        let read = self.answer.document(start, &mut |part| deltas.part(renamed(part, names)));
        read.map_err(|error| self.faults.too_large(&error))
    }

    async fn error_reply(&self, mut response: reqwest::Response) -> ModelFault {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let mut reply = ErrorReply {
            status: response.status().as_u16(),
            retry_after: retry_after(header),
            location: header(LOCATION.as_str()).map(str::to_owned),
            body: String::new(),
        };
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.next(&mut response).await {
            body.extend_from_slice(&bytes);
            if body.len() >= self.service.limits.error_body {
                body.truncate(self.service.limits.error_body);
                break;
            }
        }
        reply.body = String::from_utf8_lossy(&body).into_owned();
        self.faults.http(&reply)
    }
}

/// Restores the tool's own name in a delta.
fn renamed(part: DeltaPart, names: &ToolNames) -> DeltaPart {
    if let DeltaPart::CallStarted { index, id, name } = part {
        return DeltaPart::CallStarted { index, id, name: ToolName::from(names.own(name.as_str())) };
    }
    part
}
