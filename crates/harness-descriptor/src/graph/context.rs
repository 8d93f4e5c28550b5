//! The first context of a run (reference section 10).

use harness_diagnostics::YamlLimits;
use harness_diagnostics::document::{Document, Entry, NodeId};

use super::agents::Graph;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field, PathUse};
use crate::number::array_index;
use crate::value::{Map, Value};

/// Input of a context, besides the descriptor's defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextInput {
    /// The user's message; fills defaults that are exactly `{{input.message}}`. Default: empty.
    pub message: String,
    /// The time as ISO text; fills defaults that are exactly `{{runtime.now_iso}}`, unchecked.
    pub now: String,
    /// Values laid over the defaults: mappings are merged, everything else replaces.
    pub overrides: Map,
}

impl ContextInput {
    /// An input without message and overrides at this time.
    pub fn new(now: impl Into<String>) -> Self {
        Self { message: String::new(), now: now.into(), overrides: Map::new() }
    }

    /// Sets the user's message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the values laid over the defaults.
    #[must_use]
    pub fn overrides(mut self, overrides: Map) -> Self {
        self.overrides = overrides;
        self
    }
}

/// Positions that a default may add behind the end of a list.
const MAX_LIST_GROWTH: usize = 1000;

impl Graph {
    /// Makes a context from the defaults of `context.fields` and the input.
    pub fn create_context(&self, input: &ContextInput) -> Result<Value, DescriptorError> {
        let document = self.descriptor.document();
        let mut context = defaults(document, self.descriptor.root_id(), input, &Faults::first())?;
        if let Value::Map(context) = &mut context {
            overlay(context, &input.overrides);
        }
        Ok(context)
    }
}

/// The defaults of `context.fields` laid over each other.
pub(crate) fn defaults(
    document: &Document,
    root: NodeId,
    input: &ContextInput,
    faults: &Faults,
) -> Result<Value, DescriptorError> {
    let fields = document.get_path(root, &["context", "fields"]);
    let mut context = Value::Map(Map::new());
    for entry in fields.and_then(|id| document.object(id)).unwrap_or_default() {
        faults.keep(set_default(&mut context, document, entry, input))?;
    }
    Ok(context)
}

fn set_default(
    context: &mut Value,
    document: &Document,
    entry: &Entry,
    input: &ContextInput,
) -> Result<(), DescriptorError> {
    let key = document.resolve(&entry.key);
    let at = |fault| DescriptorError::new(fault, Some(document.place_of(entry.key_bytes)));
    if document.object(entry.value).is_none() && document.list(entry.value).is_none() {
        let field = Field::ContextField(key.to_owned());
        return Err(at(Fault::WrongType { field, expected: Expected::Object }));
    }
    match document.get(entry.value, "default") {
        Some(default) => set(context, key, default_value(document, default, input)).map_err(at),
        None => Ok(()),
    }
}

fn default_value(document: &Document, default: NodeId, input: &ContextInput) -> Value {
    match document.string(default) {
        Some("{{input.message}}") => Value::from(input.message.as_str()),
        Some("{{runtime.now_iso}}") => Value::from(input.now.as_str()),
        _ => Value::json_of(document, default),
    }
}

/// Sets the value at a dotted path, replacing values on the way that are not containers.
fn set(context: &mut Value, path: &str, value: Value) -> Result<(), Fault> {
    let mut segments: Vec<&str> = path.split('.').filter(|segment| !segment.is_empty()).collect();
    let Some(last) = segments.pop() else { return Err(Fault::EmptyPath { used_by: PathUse::Field }) };
    let depth = segments.len() as u64 + 1;
    if depth > u64::from(YamlLimits::MAX_DEPTH) {
        let limit = YamlLimits::MAX_DEPTH.into();
        return Err(Fault::TooLarge { what: "context field path in segments", limit, actual: depth });
    }
    let mut target = context;
    for segment in segments {
        let Some(next) = slot(target, segment)? else { return Ok(()) };
        if !matches!(next, Value::Map(_) | Value::List(_)) {
            *next = Value::Map(Map::new());
        }
        target = next;
    }
    if let Some(slot) = slot(target, last)? {
        *slot = value;
    }
    Ok(())
}

/// The place for a key in a container, made if it is missing; `None` for a key that a list cannot hold.
fn slot<'a>(container: &'a mut Value, key: &str) -> Result<Option<&'a mut Value>, Fault> {
    match container {
        Value::Map(map) => {
            if map.get(key).is_none() {
                map.insert(key, Value::Null);
            }
            Ok(map.get_mut(key))
        }
        Value::List(items) => {
            let Some(at) = array_index(key).map(|at| at as usize) else { return Ok(None) };
            let limit = items.len() + MAX_LIST_GROWTH;
            if at >= limit {
                let (limit, actual) = (limit as u64, at as u64);
                return Err(Fault::TooLarge { what: "position in a list of the context", limit, actual });
            }
            if at >= items.len() {
                items.resize(at + 1, Value::Null);
            }
            Ok(items.get_mut(at))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(None),
    }
}

/// Lays values over a mapping: two mappings are merged, everything else is replaced.
fn overlay(base: &mut Map, overrides: &Map) {
    for (key, new) in overrides.iter() {
        match (base.get_mut(key), new) {
            (Some(Value::Map(base)), Value::Map(new)) => overlay(base, new),
            (Some(known), _) => *known = new.clone(),
            (None, _) => base.insert(key, new.clone()),
        }
    }
}
