//! Paths into the context.

use std::fmt;
use std::sync::Arc;

use crate::error::Fault;
use crate::field::PathUse;
use crate::number::{array_index, trim};
use crate::value::Value;

/// A path of keys into a context, in normal form: `user.name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextPath {
    text: Arc<str>,
}

impl ContextPath {
    /// Brings a path into normal form: segments are trimmed, empty ones dropped, and the rest must
    /// consist of letters, digits, `_` and `-`.
    pub(crate) fn parse(written: &str, used_by: impl Fn() -> PathUse) -> Result<Self, Fault> {
        let mut text = String::with_capacity(written.len());
        for segment in written.split('.').map(trim).filter(|segment| !segment.is_empty()) {
            if !segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
                return Err(Fault::BadSegment { used_by: used_by(), segment: segment.to_owned() });
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(segment);
        }
        if text.is_empty() {
            Err(Fault::EmptyPath { used_by: used_by() })
        } else {
            Ok(Self { text: text.into() })
        }
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Reads the value at this path; `None` when there is none.
    ///
    /// Lists are entered by position and know their `length`. Nothing else has parts.
    pub(crate) fn read<'a>(&self, context: &'a Value) -> Option<Found<'a>> {
        let mut found = Found::Value(context);
        for segment in self.text.split('.') {
            found = match found {
                Found::Value(Value::Map(map)) => Found::Value(map.get(segment)?),
                Found::Value(Value::List(items)) if segment == "length" => Found::Length(items.len()),
                Found::Value(Value::List(items)) => Found::Value(items.get(array_index(segment)? as usize)?),
                Found::Value(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_))
                | Found::Length(_) => return None,
            };
        }
        Some(found)
    }
}

impl fmt::Display for ContextPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    Value(&'a Value),
    Length(usize),
}

/// Evaluates a gate: only `true` and `false` are answers.
pub(crate) fn gate_is_open(
    path: &ContextPath,
    context: &Value,
    used_by: impl Fn() -> PathUse,
) -> Result<bool, Fault> {
    let text = || path.as_str().to_owned();
    match path.read(context) {
        Some(Found::Value(Value::Bool(open))) => Ok(*open),
        Some(Found::Value(other)) => {
            Err(Fault::GateNotBoolean { used_by: used_by(), path: text(), found: other.kind_name() })
        }
        Some(Found::Length(_)) => {
            Err(Fault::GateNotBoolean { used_by: used_by(), path: text(), found: "a number" })
        }
        None => Err(Fault::GateMissing { used_by: used_by(), path: text() }),
    }
}
