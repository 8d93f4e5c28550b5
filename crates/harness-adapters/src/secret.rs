//! The key of an endpoint.

use harness_core::port::Secret;
use secrecy::{ExposeSecret, SecretString};

/// An API key: it can be sent to its endpoint and nothing else.
///
/// `Debug` shows a placeholder, there is no `Display` and no serialization, and the memory is wiped
/// on drop. White space around the key is dropped, because keys are often read from files that end
/// in a newline.
///
/// ```
/// use harness_adapters::ApiKey;
///
/// let key = ApiKey::new("sk-or-v1-0123\n");
/// assert_eq!(format!("{key:?}"), "ApiKey(redacted)");
/// ```
#[derive(Clone)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// Takes a key.
    pub fn new(key: impl Into<String>) -> Self {
        let text = SecretString::from(key.into());
        Self(SecretString::from(text.expose_secret().trim().to_owned()))
    }

    /// Whether nothing but white space was given.
    pub fn is_empty(&self) -> bool {
        self.0.expose_secret().is_empty()
    }

    /// The key itself, for the authorization header and for taking it out of texts.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(redacted)")
    }
}

impl From<ApiKey> for Secret {
    fn from(key: ApiKey) -> Self {
        Self::new(key.expose())
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}
