//! Attributes of threads, which their sessions keep.

use std::sync::Arc;

use harness::core::Json;
use harness::runtime::{MessageOptions, Thread};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// Maximum length of a user in characters.
const USER: usize = 256;

/// Maximum size of `context` and of `metadata` in bytes.
const DATA: usize = 16 * 1024;

/// User, context values and data of the caller, of a thread or of one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    /// User of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Arc<str>>,
    /// Values laid over the defaults of the descriptor's context, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Json>,
    /// Data of the caller, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Json>,
}

impl Attributes {
    /// Checks the attributes of a request.
    pub(crate) fn new(
        user: Option<&str>,
        context: Option<Json>,
        metadata: Option<Json>,
    ) -> Result<Self, Fault> {
        if let Some(user) = user
            && (user.trim().is_empty() || user.chars().count() > USER)
        {
            let length = user.chars().count();
            let message = format!("`user` has {length} characters, expected 1 to {USER}");
            return Err(Fault::unreadable(message).at("user"));
        }
        let (context, metadata) = (object("context", context)?, object("metadata", metadata)?);
        Ok(Self { user: user.map(Arc::from), context, metadata })
    }

    /// Reads the data of a session. Data of other programs has no attributes.
    pub(crate) fn of_session(meta: Option<&Json>) -> Self {
        meta.and_then(|meta| meta.to().ok()).unwrap_or_default()
    }

    /// The attributes of a thread of this process.
    pub(crate) fn of(thread: &Thread) -> Self {
        let config = thread.config();
        Self { user: config.origin.user, context: config.context, metadata: config.origin.metadata }
    }

    /// Sets the attributes of a thread. The others stay those of the server.
    pub(crate) fn apply(self, thread: &Thread) {
        if self == Self::default() {
            return;
        }
        thread.configure(|config| {
            config.origin.user = self.user.or(config.origin.user.take());
            config.origin.metadata = self.metadata.or(config.origin.metadata.take());
            config.context = self.context.or(config.context.take());
        });
    }

    /// Sets the attributes of one run.
    pub(crate) fn apply_to_run(self, options: &mut MessageOptions) {
        (options.user, options.context, options.metadata) = (self.user, self.context, self.metadata);
    }
}

fn object(name: &'static str, value: Option<Json>) -> Result<Option<Json>, Fault> {
    let Some(value) = value else { return Ok(None) };
    if !value.is_object() {
        return Err(Fault::unreadable(format!("`{name}` is not an object")).at(name));
    }
    let size = value.text().len();
    if size > DATA {
        return Err(Fault::unreadable(format!("`{name}` has {size} bytes, at most {DATA}")).at(name));
    }
    Ok(Some(value))
}
