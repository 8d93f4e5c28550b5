//! JSON Schemas of the types that are written with explicit wire names.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Settings for JSON Schemas of events and other serialized types: draft 2020-12, and no null for fields that are omitted
/// without a value.
///
/// ```
/// use harness_core::event::{Event, schema_settings};
///
/// let schema = schema_settings().into_generator().into_root_schema_for::<Event>();
/// assert!(schema.get("oneOf").is_some());
/// ```
pub fn schema_settings() -> SchemaSettings {
    let transform = RecursiveTransform(tidy as fn(&mut Schema));
    SchemaSettings::draft2020_12().for_serialize().with_transform(transform)
}

fn tidy(schema: &mut Schema) {
    omit_null(schema);
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
    }
}

/// Removes null from the properties that are not required.
fn omit_null(schema: &mut Schema) {
    let is_required = |required: &[Value], key: &str| required.iter().any(|name| name == key);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(key, _)| !is_required(&required, key)) {
        if let Value::Object(property) = property {
            remove_null(property);
        }
    }
}

fn remove_null(property: &mut Map<String, Value>) {
    property.retain(|key, value| key != "default" || !value.is_null());
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            property.insert("type".to_owned(), name);
        }
    }
    let Some(Value::Array(variants)) = property.get_mut("anyOf") else { return };
    variants.retain(|variant| variant.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(variant)] = variants.as_slice() {
        let variant = variant.clone();
        property.remove("anyOf");
        property.extend(variant);
    }
}

/// Collects the properties of an object.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Properties {
    /// Adds a property of type `T`, with its documentation.
    pub(crate) fn add<T: JsonSchema>(
        &mut self,
        generator: &mut SchemaGenerator,
        key: &str,
        docs: &[&str],
        is_required: bool,
    ) {
        let mut schema = generator.subschema_for::<T>();
        schema.insert("description".to_owned(), sentence(docs).into());
        self.properties.insert(key.to_owned(), schema.to_value());
        if is_required {
            self.required.push(key.into());
        }
    }

    /// Adds a required property that has always this text.
    pub(crate) fn add_constant(&mut self, key: &str, value: &str) {
        self.properties.insert(key.to_owned(), json!({ "type": "string", "const": value }));
        self.required.push(key.into());
    }

    /// Schema of the object.
    pub(crate) fn object(self, docs: &[&str]) -> Schema {
        let Self { properties, required } = self;
        let mut object = Map::new();
        object.insert("description".to_owned(), sentence(docs).into());
        object.insert("type".to_owned(), "object".into());
        object.insert("properties".to_owned(), properties.into());
        object.insert("required".to_owned(), required.into());
        object.into()
    }
}

/// Lines of a doc comment as one text.
pub(crate) fn sentence(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Schema of one variant: the fields of `T` and the tag.
pub(crate) fn tagged<T: JsonSchema>(generator: &mut SchemaGenerator, tag: &str, value: &str) -> Schema {
    let mut schema = generator.subschema_for::<T>();
    schema.insert("properties".to_owned(), json!({ tag: { "type": "string", "const": value } }));
    schema.insert("required".to_owned(), json!([tag]));
    schema
}

/// Declares a [`stored`](crate::stored!) struct with a JSON Schema.
macro_rules! described {
    (
        $(#[doc = $doc:literal])*
        #[derive(Default)]
        pub struct $name:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident : $ty:ty = $wire:literal ),* $(,)?
        }
    ) => {
        crate::stored! {
            $(#[doc = $doc])*
            #[derive(Default)]
            pub struct $name {
                $( $(#[doc = $field_doc])* $field: $ty = $wire ),*
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut fields = crate::schema::Properties::default();
                $(
                    let is_required = !<$ty as crate::stored::Slot>::IS_OPTIONAL;
                    fields.add::<$ty>(generator, $wire, &[$($field_doc),*], is_required);
                )*
                fields.object(&[$($doc),*])
            }
        }
    };
}
pub(crate) use described;
