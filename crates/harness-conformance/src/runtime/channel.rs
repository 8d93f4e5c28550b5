//! Vectors of kind `channel`: operations one after another on one channel, on virtual time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use harness_core::testing::VirtualClock;
use harness_core::{Json, Millis, Time};
use harness_runtime::Abort;
use harness_runtime::channel::{Channel, ChannelError, ChannelSpec, Channels, ExternalStream};
use serde_json::{Value, json};

use super::super::memory::{each_with, matches};
use super::super::subset::put;
use super::super::turn::convert::{Done, at, json as exact, list, text};
use super::poll_once;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// How often everything that waits is polled after an operation: a value may pass through several hands.
const ROUNDS: usize = 8;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each_with(vector, check, |expected, got| matches("expected", &sorted(expected), got))
}

fn check(input: &Value) -> Done<Value> {
    let mut play = Play::new(input)?;
    let steps = list(input, "ops").iter().map(|op| play.perform(op)).collect::<Done<Vec<Value>>>()?;
    Ok(json!({ "steps": steps }))
}

/// The expectation with what settled in the order of its labels, which is free.
fn sorted(expected: &Value) -> Value {
    let mut expected = expected.clone();
    let steps = expected.get_mut("steps").and_then(Value::as_array_mut);
    for step in steps.into_iter().flatten() {
        if let Some(settled) = step.get_mut("settled").and_then(Value::as_array_mut) {
            settled.sort_by_key(|settled| text(settled, "as").to_owned());
        }
    }
    expected
}

type Waiting = Pin<Box<dyn Future<Output = Value>>>;
/// A stream, taken out while somebody waits for its next value.
type Stream = Rc<RefCell<Option<ExternalStream>>>;

struct Play {
    spec: ChannelSpec,
    channels: Channels,
    clock: VirtualClock,
    contexts: BTreeMap<String, Abort>,
    streams: BTreeMap<String, (Stream, Abort)>,
    waiting: Vec<(String, Waiting)>,
}

impl Play {
    fn new(input: &Value) -> Done<Self> {
        let capacity = at(input, "capacity").as_u64().and_then(|n| usize::try_from(n).ok());
        let spec = match text(input, "mode") {
            "value" => ChannelSpec::value("ch"),
            "topic" => ChannelSpec::topic("ch"),
            "queue" => ChannelSpec::queue("ch", capacity.unwrap_or(ChannelSpec::CAPACITY)),
            other => return Err(format!("`{other}` is no mode")),
        };
        let clock = VirtualClock::still(Time(0));
        Ok(Self {
            spec: spec.external(),
            channels: Channels::new(Arc::new(clock.clone())),
            clock,
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            waiting: Vec::new(),
        })
    }

    fn perform(&mut self, op: &Value) -> Done<Value> {
        let argument = |n: usize| op.get(n).unwrap_or(&Value::Null);
        let name = |n: usize| argument(n).as_str().unwrap_or_default().to_owned();
        let what = name(0);
        let mut step = json!({ "op": what });
        match what.as_str() {
            "send" => {
                let (channel, value) = (self.channel(argument(3))?, exact(argument(1))?);
                let sent = async move { settled(channel.send(value).await.map(|()| Value::Null)) };
                self.waiting.push((name(2), Box::pin(sent)));
            }
            "recv" => {
                let channel = self.channel(argument(2))?;
                let received = async move { settled(channel.recv().await.map(|value| plain(&value))) };
                self.waiting.push((name(1), Box::pin(received)));
            }
            "try_recv" => {
                let value = self.channel(&Value::Null)?.try_recv();
                put(&mut step, "result", value.as_ref().map(plain).unwrap_or_default());
            }
            "abort" => drop(self.context(&name(1)).abort(name(2))),
            "advance" => self.clock.advance(Millis(argument(1).as_u64().unwrap_or_default())),
            "external_send" => {
                let value = exact(argument(1))?;
                let sent = self.channels.external(&self.spec).and_then(|channel| channel.send(value));
                put(
                    &mut step,
                    "result",
                    sent.map_or_else(|e| json!({ "error": error(&e) }), |()| json!("sent")),
                );
            }
            "subscribe" => {
                let channel = self.channels.external(&self.spec).map_err(|e| e.to_string())?;
                let stream = Rc::new(RefCell::new(Some(channel.listen())));
                self.streams.insert(name(1), (stream, Abort::new()));
            }
            "next" => self.next(&name(1), name(2))?,
            "return" => {
                if let Some((stream, left)) = self.streams.get(&name(1)) {
                    left.abort("left");
                    stream.take();
                }
            }
            "close" => self.channels.close(),
            "open" => self.channels.reopen(),
            other => return Err(format!("`{other}` is no operation")),
        }
        put(&mut step, "settled", self.settle());
        Ok(step)
    }

    fn context(&mut self, name: &str) -> Abort {
        let name = if name.is_empty() { "B" } else { name };
        self.contexts.entry(name.to_owned()).or_default().clone()
    }

    fn channel(&mut self, options: &Value) -> Done<Channel> {
        let abort = self.context(text(options, "ctx"));
        let channel = self.channels.open(&self.spec, &abort).map_err(|e| e.to_string())?;
        Ok(match at(options, "timeout").as_u64() {
            None => channel,
            Some(0) => channel.timeout(None),
            Some(ms) => channel.timeout(Some(Millis(ms))),
        })
    }

    fn next(&mut self, name: &str, label: String) -> Done<()> {
        let (stream, left) =
            self.streams.get(name).cloned().ok_or_else(|| format!("`{name}` is no stream"))?;
        let next = async move {
            let taken = stream.take();
            let Some(mut taken) = taken else { return ended() };
            let value = tokio::select! {
                value = taken.next() => value,
                _ = left.aborted() => return ended(),
            };
            stream.replace(Some(taken));
            value.map_or_else(ended, |value| json!({ "ok": { "value": plain(&value), "done": false } }))
        };
        self.waiting.push((label, Box::pin(next)));
        Ok(())
    }

    /// Who does not wait any more, by label.
    fn settle(&mut self) -> Value {
        let mut done = Vec::new();
        for _ in 0..ROUNDS {
            self.waiting.retain_mut(|(label, work)| match poll_once(work.as_mut()) {
                Some(mut ended) => {
                    put(&mut ended, "as", json!(label));
                    done.push(ended);
                    false
                }
                None => true,
            });
        }
        done.sort_by_key(|settled| text(settled, "as").to_owned());
        Value::Array(done)
    }
}

fn ended() -> Value {
    json!({ "ok": { "done": true } })
}

fn plain(value: &Json) -> Value {
    value.to().unwrap_or_default()
}

fn settled(done: Result<Value, ChannelError>) -> Value {
    match done {
        Ok(value) => json!({ "ok": value }),
        Err(fault) => json!({ "error": error(&fault) }),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the suite has fields for these only")]
fn error(fault: &ChannelError) -> Value {
    let mut error = json!({ "kind": fault.kind(), "message": fault.to_string() });
    match fault {
        ChannelError::Timeout { channel, timeout } => {
            put(&mut error, "channelName", json!(**channel));
            put(&mut error, "timeout", json!(timeout.0));
        }
        ChannelError::Closed { channel } => put(&mut error, "channelName", json!(**channel)),
        ChannelError::Cancelled { reason } => put(&mut error, "reason", json!(**reason)),
        _ => {}
    }
    error
}
