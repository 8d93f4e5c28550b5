//! Fields of a JSON object, put together one by one.

use serde::{Serialize, Serializer};

use crate::json::Json;

/// Named values, in order.
#[derive(Default)]
pub(super) struct Fields(pub(super) Vec<(&'static str, Json)>);

impl Fields {
    /// Adds a field.
    pub(super) fn put(&mut self, key: &'static str, value: &impl Serialize) {
        self.0.push((key, Json::of(value).unwrap_or_else(|_| Json::null())));
    }

    /// Adds a field, where there is one.
    pub(super) fn maybe(&mut self, key: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(key, &value);
        }
    }

    /// All of them as one object.
    pub(super) fn object(&self) -> Json {
        struct Object<'a>(&'a [(&'static str, Json)]);
        impl Serialize for Object<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
            }
        }
        Json::of(&Object(&self.0)).unwrap_or_default()
    }
}
