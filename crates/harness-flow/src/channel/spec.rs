//! What a channel is like.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use serde::de::DeserializeOwned;

/// How a channel hands values on. See the table of the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One present value.
    Value,
    /// Values wait in line, so many at most; 0 hands over from sender to receiver directly.
    Queue {
        /// How many.
        capacity: usize,
    },
    /// Every value to whoever listens.
    Topic,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value => f.write_str("value"),
            Self::Queue { capacity } => write!(f, "queue of {capacity}"),
            Self::Topic => f.write_str("topic"),
        }
    }
}

type Check = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

/// A channel's name and what it is like. All who use a name must declare the same mode.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChannelSpec {
    /// The name.
    pub name: Arc<str>,
    /// How it hands values on.
    pub mode: Mode,
    /// Whether it can be reached from outside the execution. Default false.
    pub external: bool,
    /// Whether all executions of a runner share it. Default false: it belongs to one root execution.
    pub shared: bool,
    schema: Option<Check>,
}

impl fmt::Debug for ChannelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSpec")
            .field("name", &self.name)
            .field("mode", &self.mode)
            .field("external", &self.external)
            .field("shared", &self.shared)
            .field("schema", &self.schema.is_some())
            .finish()
    }
}

impl ChannelSpec {
    /// The capacity of a queue for which nobody wants another.
    pub const CAPACITY: usize = 1_000;

    /// A channel that takes any value.
    pub fn new(name: impl Into<Arc<str>>, mode: Mode) -> Self {
        Self { name: name.into(), mode, external: false, shared: false, schema: None }
    }

    /// A channel of one present value.
    pub fn value(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Mode::Value)
    }

    /// A queue; see [`ChannelSpec::CAPACITY`].
    pub fn queue(name: impl Into<Arc<str>>, capacity: usize) -> Self {
        Self::new(name, Mode::Queue { capacity })
    }

    /// A topic.
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Mode::Topic)
    }

    /// The same channel, reached from outside, too.
    #[must_use]
    pub fn external(mut self) -> Self {
        self.external = true;
        self
    }

    /// The same channel, shared by all executions of a runner.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// The same channel, which takes only what `check` accepts; its error says what is wrong.
    #[must_use]
    pub fn checked(mut self, check: impl Fn(&Json) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.schema = Some(Arc::new(check));
        self
    }

    /// The same channel, which takes only what can be read as `T`.
    #[must_use]
    pub fn of<T: DeserializeOwned>(self) -> Self {
        self.checked(|value| value.to::<T>().map(drop).map_err(|error| error.to_string()))
    }

    pub(super) fn check(&self, value: &Json) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |check| check(value))
    }
}
