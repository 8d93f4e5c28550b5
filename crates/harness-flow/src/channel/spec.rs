//! Declarations of channels.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use serde::de::DeserializeOwned;

/// Mode of a channel. See the table of the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One current value.
    Value,
    /// A bounded queue.
    Queue {
        /// Maximum number of queued values; 0 hands values directly to receivers.
        capacity: usize,
    },
    /// Broadcast to current receivers.
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

/// Declaration of a channel. All declarations of a name must have one mode.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChannelSpec {
    /// Name of the channel.
    pub name: Arc<str>,
    /// Mode of the channel.
    pub mode: Mode,
    /// Whether it can be opened from outside the execution. Default false.
    pub external: bool,
    /// Whether all executions of a runner share it. Default false.
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
    /// Usual capacity of a queue.
    pub const CAPACITY: usize = 1_000;

    /// Declares a channel for any value.
    pub fn new(name: impl Into<Arc<str>>, mode: Mode) -> Self {
        Self { name: name.into(), mode, external: false, shared: false, schema: None }
    }

    /// Declares a value channel.
    pub fn value(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Mode::Value)
    }

    /// Declares a queue; see [`ChannelSpec::CAPACITY`].
    pub fn queue(name: impl Into<Arc<str>>, capacity: usize) -> Self {
        Self::new(name, Mode::Queue { capacity })
    }

    /// Declares a topic.
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, Mode::Topic)
    }

    /// Makes the channel reachable from outside.
    #[must_use]
    pub fn external(mut self) -> Self {
        self.external = true;
        self
    }

    /// Shares the channel between all executions of a runner.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Validates values with `check`, whose error describes the problem.
    #[must_use]
    pub fn checked(mut self, check: impl Fn(&Json) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.schema = Some(Arc::new(check));
        self
    }

    /// Accepts only values that deserialize as `T`.
    #[must_use]
    pub fn of<T: DeserializeOwned>(self) -> Self {
        self.checked(|value| value.to::<T>().map(drop).map_err(|error| error.to_string()))
    }

    pub(super) fn check(&self, value: &Json) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |check| check(value))
    }
}
