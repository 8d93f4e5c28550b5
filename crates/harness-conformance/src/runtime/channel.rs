//! Vectors of kind `channel`: operations one after another on one channel, on paused time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Cancel;
use harness_core::{Json, Millis};
use harness_flow::channel::{Channel, ChannelError, ChannelSpec, Channels, ExternalStream};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Done;
use crate::case::{Case, exact, on_paused_time, plain};
use crate::clock::PausedClock;
use crate::subset::{matches, put};
use crate::turn::convert::text;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Scheduler rounds after each operation. A value may pass through several tasks.
const ROUNDS: usize = 64;

/// Runs the vector. The order in which what settled is listed is free.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judged(vector).into()
}

fn judged(vector: &Vector) -> Done<()> {
    let Case { input, mut expect, .. } = Case::of(vector)?;
    for step in expect.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(settled) = step.get_mut("settled").and_then(Value::as_array_mut) {
            settled.sort_by_key(|settled| text(settled, "as").to_owned());
        }
    }
    matches("expected", &expect, &on_paused_time(check(input))?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    mode: Mode,
    capacity: Option<usize>,
    #[serde(default)]
    external: bool,
    ops: Vec<Op>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Value,
    Queue,
    Topic,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// In milliseconds; 0 is none.
    timeout: Option<u64>,
    ctx: Option<String>,
}

/// An operation, written as a list of its name and its arguments.
#[derive(Deserialize)]
#[serde(try_from = "Vec<Value>")]
enum Op {
    Send { value: Value, label: String, options: Options },
    Recv { label: String, options: Options },
    TryRecv,
    Abort { ctx: String, reason: String },
    Advance { ms: u64 },
    ExternalSend { value: Value },
    Subscribe { stream: String },
    Next { stream: String, label: String },
    Return { stream: String },
    Close,
    Open,
}

impl TryFrom<Vec<Value>> for Op {
    type Error = String;

    fn try_from(words: Vec<Value>) -> Done<Self> {
        let mut words = words.into_iter();
        let name = words.next().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        let mut next = || words.next().ok_or_else(|| format!("`{name}` wants another argument"));
        let word =
            |value: Value| value.as_str().map(str::to_owned).ok_or_else(|| format!("invalid name {value}"));
        let options = |value: Option<Value>| {
            value.map(serde_json::from_value::<Options>).transpose().map_err(|e| e.to_string())
        };
        let op = match &*name {
            "send" => {
                let (value, label) = (next()?, word(next()?)?);
                Self::Send { value, label, options: options(words.next())?.unwrap_or_default() }
            }
            "recv" => {
                let label = word(next()?)?;
                Self::Recv { label, options: options(words.next())?.unwrap_or_default() }
            }
            "try_recv" => Self::TryRecv,
            "abort" => Self::Abort { ctx: word(next()?)?, reason: word(next()?)? },
            "advance" => {
                let ms = next()?;
                Self::Advance { ms: ms.as_u64().ok_or_else(|| format!("invalid time {ms}"))? }
            }
            "external_send" => Self::ExternalSend { value: next()? },
            "subscribe" => Self::Subscribe { stream: word(next()?)? },
            "next" => Self::Next { stream: word(next()?)?, label: word(next()?)? },
            "return" => Self::Return { stream: word(next()?)? },
            "close" => Self::Close,
            "open" => Self::Open,
            other => return Err(format!("unknown operation `{other}`")),
        };
        words.next().map_or(Ok(op), |more| Err(format!("`{name}` does not know {more}")))
    }
}

impl Op {
    fn name(&self) -> &'static str {
        match self {
            Self::Send { .. } => "send",
            Self::Recv { .. } => "recv",
            Self::TryRecv => "try_recv",
            Self::Abort { .. } => "abort",
            Self::Advance { .. } => "advance",
            Self::ExternalSend { .. } => "external_send",
            Self::Subscribe { .. } => "subscribe",
            Self::Next { .. } => "next",
            Self::Return { .. } => "return",
            Self::Close => "close",
            Self::Open => "open",
        }
    }
}

async fn check(input: Input) -> Done<Value> {
    let mut play = Play::new(&input);
    let mut steps = Vec::new();
    for op in input.ops {
        steps.push(play.perform(op).await?);
    }
    Ok(json!({ "steps": steps }))
}

/// The label and the result of a settled wait.
type Settled = (String, Done<Value>);

/// A stream. `None` while a task waits for its next value.
type Stream = Rc<RefCell<Option<ExternalStream>>>;

struct Play {
    spec: ChannelSpec,
    channels: Channels,
    contexts: BTreeMap<String, Cancel>,
    streams: BTreeMap<String, (Stream, Cancel)>,
    /// Settled waits that are not yet reported.
    settled: Rc<RefCell<Vec<Settled>>>,
}

impl Play {
    fn new(input: &Input) -> Self {
        let spec = match input.mode {
            Mode::Value => ChannelSpec::value("ch"),
            Mode::Topic => ChannelSpec::topic("ch"),
            Mode::Queue => ChannelSpec::queue("ch", input.capacity.unwrap_or(ChannelSpec::CAPACITY)),
        };
        Self {
            spec: if input.external { spec.external() } else { spec },
            channels: Channels::new(Arc::new(PausedClock::new())),
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            settled: Rc::default(),
        }
    }

    async fn perform(&mut self, op: Op) -> Done<Value> {
        let mut step = json!({ "op": op.name() });
        match op {
            Op::Send { value, label, options } => {
                let (channel, value) = (self.channel(&options)?, exact(&value)?);
                self.wait(label, async move { settled(channel.send(value).await.map(|()| None)) });
            }
            Op::Recv { label, options } => {
                let channel = self.channel(&options)?;
                self.wait(label, async move { settled(channel.recv().await.map(Some)) });
            }
            Op::TryRecv => {
                let value = self.channel(&Options::default())?.try_recv();
                put(&mut step, "result", value.as_ref().map(plain).transpose()?.unwrap_or_default());
            }
            Op::Abort { ctx, reason } => drop(self.context(&ctx).cancel_with(reason)),
            Op::Advance { ms } => tokio::time::advance(Duration::from_millis(ms)).await,
            Op::ExternalSend { value } => {
                let value = exact(&value)?;
                let sent = self.channels.external(&self.spec).and_then(|channel| channel.send(value));
                let result = sent.map_or_else(|e| json!({ "error": error(&e) }), |()| json!("sent"));
                put(&mut step, "result", result);
            }
            Op::Subscribe { stream } => {
                let channel = self.channels.external(&self.spec).map_err(|e| e.to_string())?;
                let listens = Rc::new(RefCell::new(Some(channel.listen())));
                self.streams.insert(stream, (listens, Cancel::new()));
            }
            Op::Next { stream, label } => {
                let (stream, left) = self.stream(&stream)?;
                self.wait(label, next(stream, left));
            }
            Op::Return { stream } => {
                let (stream, left) = self.stream(&stream)?;
                left.cancel_with("left");
                stream.take();
            }
            Op::Close => self.channels.close(),
            Op::Open => self.channels.reopen(),
        }
        for _ in 0..ROUNDS {
            tokio::task::yield_now().await;
        }
        put(&mut step, "settled", self.take_settled()?);
        Ok(step)
    }

    /// Spawns a wait, whose result settles under the label.
    fn wait(&self, label: String, work: impl Future<Output = Done<Value>> + 'static) {
        let settled = Rc::clone(&self.settled);
        tokio::task::spawn_local(async move {
            let done = work.await;
            settled.borrow_mut().push((label, done));
        });
    }

    fn context(&mut self, name: &str) -> Cancel {
        self.contexts.entry(name.to_owned()).or_default().clone()
    }

    fn channel(&mut self, options: &Options) -> Done<Channel> {
        let abort = self.context(options.ctx.as_deref().unwrap_or("B"));
        let channel = self.channels.open(&self.spec, &abort).map_err(|e| e.to_string())?;
        Ok(match options.timeout {
            None => channel,
            Some(0) => channel.timeout(None),
            Some(ms) => channel.timeout(Some(Millis(ms))),
        })
    }

    fn stream(&self, name: &str) -> Done<(Stream, Cancel)> {
        self.streams.get(name).cloned().ok_or_else(|| format!("unknown stream `{name}`"))
    }

    /// Removes the settled waits and returns them, sorted by label.
    fn take_settled(&self) -> Done<Value> {
        let mut settled = self.settled.take();
        settled.sort_by(|(a, _), (b, _)| a.cmp(b));
        let labelled = settled.into_iter().map(|(label, done)| {
            let mut done = done?;
            put(&mut done, "as", json!(label));
            Ok(done)
        });
        labelled.collect()
    }
}

/// The next value of a stream; nothing more when it is at its end, or was left.
async fn next(stream: Stream, left: Cancel) -> Done<Value> {
    let end = json!({ "ok": { "done": true } });
    let taken = stream.take();
    let Some(mut taken) = taken else { return Ok(end) };
    let value = tokio::select! {
        value = taken.next() => value,
        () = left.cancelled() => return Ok(end),
    };
    stream.replace(Some(taken));
    Ok(match value {
        Some(value) => json!({ "ok": { "value": plain(&value)?, "done": false } }),
        None => end,
    })
}

fn settled(done: Result<Option<Json>, ChannelError>) -> Done<Value> {
    Ok(match done {
        Ok(value) => json!({ "ok": value.as_ref().map(plain).transpose()? }),
        Err(fault) => json!({ "error": error(&fault) }),
    })
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
