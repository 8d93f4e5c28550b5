//! Channels of an execution.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness_core::Cancel;
use harness_core::port::Clock;
use parking_lot::Mutex;

use super::handle::{Channel, Shared};
use super::{ChannelError, ChannelSpec, ExternalChannel};

/// Maximum number of channels per execution.
const MOST: usize = 4_096;

/// Channels of a root execution, by name. Clones share them.
#[derive(Clone)]
pub struct Channels {
    clock: Arc<dyn Clock>,
    scope: Arc<Mutex<Scope>>,
}

#[derive(Default)]
struct Scope {
    channels: BTreeMap<Arc<str>, Arc<Shared>>,
    closed: bool,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.scope.lock().channels.keys()).finish()
    }
}

impl Channels {
    /// Creates an empty scope.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, scope: Arc::default() }
    }

    /// Opens a channel, creating it on first use. Its waits end when `cancel` fires.
    ///
    /// # Errors
    /// [`ChannelError::Mismatch`] for a second mode, [`ChannelError::TooMany`].
    pub fn open(&self, spec: &ChannelSpec, cancel: &Cancel) -> Result<Channel, ChannelError> {
        Ok(Channel::new(self.find(spec)?, cancel.clone()))
    }

    /// Opens a channel from outside.
    ///
    /// # Errors
    /// [`ChannelError::NotExternal`], and those of [`Channels::open`].
    pub fn external(&self, spec: &ChannelSpec) -> Result<ExternalChannel, ChannelError> {
        if !spec.external {
            return Err(ChannelError::NotExternal { channel: Arc::clone(&spec.name) });
        }
        self.find(spec).map(ExternalChannel::new)
    }

    /// Closes all channels and ends all waits. Buffered values stay.
    pub fn close(&self) {
        let mut scope = self.scope.lock();
        scope.closed = true;
        scope.channels.values().for_each(|channel| channel.lock().close());
    }

    /// Reopens all channels.
    pub fn reopen(&self) {
        let mut scope = self.scope.lock();
        scope.closed = false;
        scope.channels.values().for_each(|channel| channel.lock().closed = false);
    }

    fn find(&self, spec: &ChannelSpec) -> Result<Arc<Shared>, ChannelError> {
        let mut scope = self.scope.lock();
        let name = || Arc::clone(&spec.name);
        if let Some(channel) = scope.channels.get(&spec.name) {
            let (declared, asked) = (channel.spec.mode, spec.mode);
            return if declared == asked {
                Ok(Arc::clone(channel))
            } else {
                Err(ChannelError::Mismatch { channel: name(), declared, asked })
            };
        }
        if scope.channels.len() == MOST {
            return Err(ChannelError::TooMany { channel: name(), most: MOST });
        }
        let channel = Arc::new(Shared::new(spec.clone(), Arc::clone(&self.clock)));
        channel.lock().closed = scope.closed;
        scope.channels.insert(name(), Arc::clone(&channel));
        Ok(channel)
    }
}
