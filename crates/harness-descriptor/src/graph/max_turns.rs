//! `runtime.max_iterations`: a limit, or a fault. `max_turns` is its alias, the key of source 000.

use std::num::NonZeroU32;

use crate::document::{Document, Kind, NodeId};
use crate::error::{DescriptorError, Fault};

/// The keys of the limit: the first that is there counts.
const KEYS: [&str; 2] = ["max_iterations", "max_turns"];

/// What is done about a `runtime.max_iterations` that is no whole number from 1 on.
///
/// Source 000 accepts anything; every run then fails at once (zero, negative numbers, words) or has
/// another limit than is written (fractions).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaxTurns {
    /// It is a fault of the descriptor.
    #[default]
    Checked,
    /// It is carried along as written and limits nothing.
    Unchecked,
}

/// Characters of a wrong value that its fault repeats.
const MAX_SHOWN: usize = 40;

/// The limit; `None` without one, as when it is `null`.
pub(super) fn read(
    document: &Document,
    root: NodeId,
    rule: MaxTurns,
) -> Result<Option<NonZeroU32>, DescriptorError> {
    let written = |key: &&'static str| Some((*key, document.get_path(root, &["runtime", key])?));
    let keys = match rule {
        MaxTurns::Checked => &KEYS[..],
        // Source 000 has the second one only.
        MaxTurns::Unchecked => KEYS.split_at(1).1,
    };
    let Some((key, node)) = keys.iter().find_map(written) else { return Ok(None) };
    let limit = match document.kind(node) {
        Kind::Null => return Ok(None),
        Kind::Number(number) => limit(*number),
        Kind::Bool(_) | Kind::Instant(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
    };
    match (limit, rule) {
        (Some(limit), _) => Ok(Some(limit)),
        (None, MaxTurns::Unchecked) => Ok(None),
        (None, MaxTurns::Checked) => {
            let found = document.display_text(node).chars().take(MAX_SHOWN).collect();
            let fault = Fault::MaxTurns { key, found };
            Err(DescriptorError::new(fault, Some(document.place(node))))
        }
    }
}

fn limit(number: f64) -> Option<NonZeroU32> {
    let whole = number.fract() == 0.0 && number >= 1.0 && number <= f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    let limit = whole.then_some(number as u32)?;
    NonZeroU32::new(limit)
}
