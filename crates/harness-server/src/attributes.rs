//! Attributes of threads, which their sessions keep.

use std::sync::Arc;

use harness::core::Json;
use harness::runtime::{MessageOptions, ThreadAttributes};

use crate::fault::Fault;

/// Maximum length of a user in characters.
const USER: usize = 256;

/// Maximum size of `context` and of `metadata` in bytes.
const DATA: usize = 16 * 1024;

/// Checks the attributes of a request.
pub(crate) fn checked(
    user: Option<&str>,
    context: Option<Json>,
    metadata: Option<Json>,
) -> Result<ThreadAttributes, Fault> {
    if let Some(user) = user
        && (user.trim().is_empty() || user.chars().count() > USER)
    {
        let length = user.chars().count();
        let message = format!("`user` has {length} characters, expected 1 to {USER}");
        return Err(Fault::unreadable(message).at("user"));
    }
    let mut attributes = ThreadAttributes::default();
    (attributes.context, attributes.metadata) = (object("context", context)?, object("metadata", metadata)?);
    attributes.user = user.map(Arc::from);
    Ok(attributes)
}

/// Reads the data of a session. Data of other programs has no attributes.
pub(crate) fn of_session(meta: Option<&Json>) -> ThreadAttributes {
    meta.and_then(|meta| meta.to().ok()).unwrap_or_default()
}

/// Sets the attributes of one run.
pub(crate) fn apply_to_run(attributes: ThreadAttributes, options: &mut MessageOptions) {
    (options.user, options.context, options.metadata) =
        (attributes.user, attributes.context, attributes.metadata);
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
