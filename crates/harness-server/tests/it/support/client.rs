//! A client that keeps tests short.

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::Value;

use super::within;

/// An answer: its status and its JSON; `null` for none.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Reply {
    /// The stable code of the fault.
    pub(crate) fn kind(&self) -> &str {
        let error = &self.body["error"];
        error["kind"].as_str().or(error["code"].as_str()).unwrap_or_default()
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        Self { http: reqwest::Client::builder().no_proxy().build().unwrap(), url: url.to_owned() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let response = within("the answer", request.send()).await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        Reply { status, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send(self.request(Method::PATCH, path).json(&body)).await
    }

    /// Creates a thread.
    pub(crate) async fn create(&self, id: &str) {
        let reply = self.post("/v1/threads", serde_json::json!({ "id": id })).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    /// Prompts a thread and waits: the text of the answer.
    pub(crate) async fn ask(&self, thread: &str, text: &str) -> String {
        let path = format!("/v1/threads/{thread}/prompt?wait");
        let reply = self.post(&path, serde_json::json!({ "text": text })).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body["text"].as_str().unwrap().to_owned()
    }

    /// Follows a thread.
    pub(crate) async fn follow(&self, path: &str, last: Option<u64>) -> Frames {
        let mut request = self.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let response = within("the stream", request.send()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Frames { bytes: Box::pin(response.bytes_stream()), text: String::new() }
    }
}

/// What a stream tells.
pub(crate) struct Frames {
    bytes: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<axum::body::Bytes>>>>,
    text: String,
}

impl Frames {
    /// The next event; `None` at the end. Comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame(block), rest.to_owned());
                self.text = rest;
                if frame.is_some() {
                    return frame;
                }
            }
            let bytes = within("more of the stream", self.bytes.next()).await?.ok()?;
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// The events up to and with the first one of that name.
    pub(crate) async fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let last = frame.event == event;
            frames.push(frame);
            if last {
                return frames;
            }
        }
        panic!("the stream ended before `{event}`: {frames:?}");
    }

    /// All that is left.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn frame(block: &str) -> Option<Frame> {
    let field = |name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start().to_owned())
    };
    Some(Frame {
        id: field("id:").map(|id| id.parse().unwrap()),
        event: field("event:")?,
        data: serde_json::from_str(&field("data:").unwrap()).unwrap(),
    })
}
