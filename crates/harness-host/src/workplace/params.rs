//! Construction parameters of a host.

use harness_core::Json;
use harness_core::tool::SchemaValidator;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Construction parameters: a JSON value that every step can read and none can change. Default `{}`.
///
/// They are held against a schema, or a type, at once: a host with params that do not fit is never made.
///
/// ```
/// use harness_core::Json;
/// use harness_core::tool::ShallowSchemas;
/// use harness_host::Params;
///
/// let schema = Json::parse(r#"{ "type": "object", "required": ["region"] }"#)?;
/// let params = Params::checked(Json::parse(r#"{ "region": "eu" }"#)?, &schema, &ShallowSchemas)?;
/// assert_eq!(params.json().text(), r#"{"region":"eu"}"#);
///
/// let fault = Params::checked(Json::empty_object(), &schema, &ShallowSchemas).unwrap_err();
/// assert_eq!(fault.to_string(), "the params do not fit their schema: missing required fields: region");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params(Json);

/// Error of invalid parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsFault {
    /// They are not what their schema describes.
    #[error("the params do not fit their schema: {problem}")]
    Schema {
        /// Message of the validator: place, expected and found value.
        problem: String,
    },
    /// They do not read as a type.
    #[error("the params do not read as `{wanted}`: {}{problem}", at(.path))]
    Form {
        /// Name of the type.
        wanted: &'static str,
        /// Where: `regions[2].name`; empty for the whole.
        path: String,
        /// Expected and found value.
        problem: String,
    },
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}`: ") }
}

impl ParamsFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Schema { .. } => "params_schema",
            Self::Form { .. } => "params_form",
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new(Json::empty_object())
    }
}

impl Params {
    /// Params that may be anything.
    pub fn new(params: Json) -> Self {
        Self(params)
    }

    /// Params that fit a JSON Schema, of which `validator` decides: core's
    /// [`ShallowSchemas`](harness_core::tool::ShallowSchemas) looks at the top level only, `JsonSchemas` of
    /// harness-tools knows all of JSON Schema.
    ///
    /// # Errors
    /// [`ParamsFault::Schema`].
    pub fn checked(
        params: Json,
        schema: &Json,
        validator: &dyn SchemaValidator,
    ) -> Result<Self, ParamsFault> {
        let value = |json: &Json, what: &str| {
            json.to::<Value>().map_err(|error| ParamsFault::Schema { problem: format!("{what}: {error}") })
        };
        let (schema, data) = (value(schema, "the schema cannot be read")?, value(&params, "they cannot be")?);
        validator.check(&schema, &data).map_err(|problem| ParamsFault::Schema { problem })?;
        Ok(Self::new(params))
    }

    /// Params that read as `T`.
    ///
    /// # Errors
    /// [`ParamsFault::Form`].
    pub fn of<T: DeserializeOwned>(params: Json) -> Result<Self, ParamsFault> {
        let params = Self::new(params);
        params.read::<T>().map(|_| params)
    }

    /// Value of the parameters.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// [`ParamsFault::Form`].
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ParamsFault> {
        let mut reader = serde_json::Deserializer::from_str(self.0.text());
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            ParamsFault::Form {
                wanted: std::any::type_name::<T>(),
                path,
                problem: error.into_inner().to_string(),
            }
        })
    }
}
