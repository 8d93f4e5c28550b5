//! Settings that become part of each request's body.

use harness_core::Json;

use crate::AdapterError;
use crate::structured::{OutputSchema, expects_json};

/// The setting of an [`OutputSchema`], which every protocol is given as a `response_format`.
const OUTPUT_SCHEMA: &str = "output_schema";
pub(crate) const RESPONSE_FORMAT: &str = "response_format";

/// Settings of a model in their order, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings(Vec<(String, Json)>);

impl Settings {
    pub(crate) fn parse(settings: &Json, reserved: &[&str]) -> Result<Self, AdapterError> {
        let entries = settings.entries().map_err(|_| AdapterError::Settings { found: kind_of(settings) })?;
        let mut out = Self::default();
        for (key, value) in entries {
            if reserved.contains(&key.as_str()) {
                return Err(AdapterError::ReservedSetting { key });
            }
            if key != OUTPUT_SCHEMA {
                out.set(key, value);
            } else if value.is_null() {
                out.set(RESPONSE_FORMAT.to_owned(), value);
            } else {
                let format = OutputSchema::of_setting(&value)?.response_format()?;
                out.set(RESPONSE_FORMAT.to_owned(), format);
            }
        }
        Ok(out)
    }

    /// These settings with those of `stronger` on top, key by key.
    pub(crate) fn overlaid(&self, stronger: Self) -> Self {
        let mut out = self.clone();
        for (key, value) in stronger.0 {
            out.set(key, value);
        }
        out
    }

    /// Sets what is not set yet.
    pub(crate) fn set_missing(&mut self, key: &str, value: Json) {
        if !self.has(key) {
            self.set(key.to_owned(), value);
        }
    }

    pub(crate) fn set(&mut self, key: String, value: Json) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((key, value)),
        }
    }

    /// All settings, in their order.
    pub(crate) fn entries(&self) -> &[(String, Json)] {
        &self.0
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Whether answers must be JSON.
    pub(crate) fn expects_json(&self) -> bool {
        self.get(RESPONSE_FORMAT).is_some_and(expects_json)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Removes a setting and returns it; null counts as absent.
    pub(crate) fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1).filter(|value| !value.is_null())
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value.text().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Merges a `reasoning` object with a new effort. `None` if the result is empty.
pub(crate) fn reasoning(given: Option<&Json>, effort: Option<&str>) -> Option<Json> {
    let mut entries = given.and_then(|given| given.entries().ok()).unwrap_or_default();
    entries.retain(|(key, _)| !matches!(key.as_str(), "effort" | "max_tokens" | "enabled"));
    entries.extend(effort.map(|effort| ("effort".to_owned(), Json::string(effort))));
    (!entries.is_empty()).then(|| Json::object(entries))
}

/// The text of a JSON object of these entries.
pub(crate) fn object_text<K: AsRef<str>>(entries: &[(K, Json)]) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}:{value}", Json::string(key.as_ref()))).collect();
    format!("{{{}}}", entries.join(","))
}
