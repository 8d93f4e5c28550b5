//! Validation of `runtime.max_iterations` and its alias `max_turns`.

use std::num::NonZeroU32;

use harness_diagnostics::document::{Document, Kind, NodeId};

use crate::error::{DescriptorError, Fault};

/// Keys of the limit; the first existing one counts.
const KEYS: [&str; 2] = ["max_iterations", "max_turns"];

/// Maximum characters of an invalid value in its error.
const MAX_SHOWN: usize = 40;

/// The limit; `None` without one, as when it is `null`.
pub(super) fn read(document: &Document, root: NodeId) -> Result<Option<NonZeroU32>, DescriptorError> {
    let written = |key: &&'static str| Some((*key, document.get_path(root, &["runtime", key])?));
    let Some((key, node)) = KEYS.iter().find_map(written) else { return Ok(None) };
    let limit = match document.kind(node) {
        Kind::Null => return Ok(None),
        Kind::Number(number) => limit(*number),
        Kind::Bool(_) | Kind::Instant(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
    };
    if limit.is_none() {
        let found = document.display_text(node).chars().take(MAX_SHOWN).collect();
        return Err(DescriptorError::new(Fault::MaxTurns { key, found }, Some(document.place(node))));
    }
    Ok(limit)
}

fn limit(number: f64) -> Option<NonZeroU32> {
    let whole = number.fract() == 0.0 && number >= 1.0 && number <= f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    let limit = whole.then_some(number as u32)?;
    NonZeroU32::new(limit)
}
