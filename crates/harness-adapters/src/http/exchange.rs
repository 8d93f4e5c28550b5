//! One request and its reply: sent, read to its end or to its failure, never longer than wanted.

use harness_core::ToolName;
use harness_core::message::FinishReason;
use harness_core::port::{DeltaPart, Deltas, ModelFault};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::draft::{Asked, Draft};
use super::fault::{ErrorReply, Faults, retry_after};
use super::frames::{Frames, provider_event};
use super::names::ToolNames;
use super::service::Service;
use super::{ReplyLimits, ReportedError, Sink, Undecoded};
use crate::AdapterError;

/// A reply under construction; each protocol has its own.
pub(crate) trait Reply: Default + Send {
    /// Reads one event of a stream, or a reply that is one document.
    fn event(&mut self, data: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError>;

    /// Reads a reply that is one JSON document instead of a stream.
    fn document(&mut self, text: &str, limits: &ReplyLimits, parts: Sink<'_>) -> Result<(), AdapterError> {
        self.event(text, limits, parts)
    }

    /// Notes a comment, which only keeps the connection alive.
    fn comment(&mut self) {}

    /// Whether nothing of interest can follow: the end was announced, or the endpoint reported an error.
    fn is_over(&self) -> bool;

    /// Whether the answer can be used as it is, so that a broken connection changes nothing.
    fn is_whole(&self) -> bool {
        matches!(self.end(), End::Stopped(_))
    }

    /// Completes texts that end inside a character.
    fn finish(&mut self) {}

    /// The first error that the endpoint reported inside the reply.
    fn error(&self) -> Option<&ReportedError>;

    /// Events that cannot be read.
    fn undecoded(&self) -> &Undecoded;

    /// The reply, if it is one small document.
    fn whole_document(&self) -> Option<&str> {
        None
    }

    /// Input tokens that were written to a cache for an hour.
    fn cached_for_an_hour(&self) -> u64 {
        0
    }

    /// How the answer ended.
    fn end(&self) -> End;

    /// The message of the answer so far.
    fn draft<'a>(&self, asked: Asked<'a>) -> Draft<'a>;
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// With a finish reason.
    Stopped(FinishReason),
    /// With an error that the endpoint does not explain.
    Failed,
    /// Before its end.
    Cut,
}

/// One request and the reply to it.
pub(crate) struct Exchange<'a, R> {
    pub(crate) service: &'a Service,
    /// The header with the request's own key.
    pub(crate) key: Option<(HeaderName, HeaderValue)>,
    pub(crate) faults: &'a Faults,
    pub(crate) deltas: &'a dyn Deltas,
    pub(crate) names: &'a ToolNames,
    pub(crate) reply: &'a mut R,
    pub(crate) frames: Frames,
}

impl<R: Reply> Exchange<'_, R> {
    /// Sends the request and reads the reply.
    pub(crate) async fn run(&mut self, body: String) -> Result<(), ModelFault> {
        let url = self.service.endpoint.url().clone();
        let mut request = self.service.client.post(url).body(body);
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
                Err(_) if self.reply.is_whole() => return Ok(()),
                Err(fault) => return Err(fault),
            }
            if self.reply.is_over() {
                return Ok(());
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ModelFault> {
        let (limits, deltas, names) = (&self.service.limits, self.deltas, self.names);
        let fed = self.frames.read(bytes, self.reply, limits, &mut |part| deltas.part(renamed(part, names)));
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
        let (limits, deltas, names) = (&self.service.limits, self.deltas, self.names);
        if self.service.provider_events {
            deltas.part(provider_event(start));
        }
        let read = self.reply.document(start, limits, &mut |part| deltas.part(renamed(part, names)));
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
