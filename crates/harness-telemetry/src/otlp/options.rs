//! Where spans go.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use harness_core::port::Secret;
use reqwest::Url;

use super::OtlpError;

/// The path of traces at a collector.
const PATH: &str = "/v1/traces";

/// Where spans go, and in whose name.
///
/// ```
/// use harness_telemetry::otlp::OtlpOptions;
///
/// let options = OtlpOptions::new("https://collector.example")?.headers("x-team=one,authorization=Bearer%20k")?;
/// assert!(!format!("{options:?}").contains("Bearer"));
/// # Ok::<(), harness_telemetry::otlp::OtlpError>(())
/// ```
#[derive(Clone)]
pub struct OtlpOptions {
    pub(super) url: Url,
    headers: Vec<(String, Secret)>,
    pub(super) service_name: String,
    pub(super) timeout: Duration,
}

impl fmt::Debug for OtlpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpOptions")
            .field("endpoint", &self.shown())
            .field("headers", &self.headers)
            .field("service_name", &self.service_name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl OtlpOptions {
    /// Creates options for a collector URL: the base (`http://127.0.0.1:4318`), to which
    /// `/v1/traces` is added, or the full URL.
    ///
    /// # Errors
    /// [`OtlpError::Endpoint`] if it is not an HTTP URL, or contains a user name or password.
    pub fn new(url: &str) -> Result<Self, OtlpError> {
        let fault = |reason: &str| {
            let shown = url.split(['?', '#']).next().unwrap_or_default();
            let shown = shown.rsplit_once('@').map_or(shown, |(_, host)| host);
            OtlpError::Endpoint { url: shown.to_owned(), reason: reason.to_owned() }
        };
        let mut parsed = Url::parse(url.trim()).map_err(|error| fault(&error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(fault("its scheme is neither http nor https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(fault("it holds a user name or password; send them as a header"));
        }
        let path = parsed.path().trim_end_matches('/').to_owned();
        parsed.set_path(&if path.ends_with(PATH) { path } else { path + PATH });
        parsed.set_fragment(None);
        let timeout = Duration::from_secs(4);
        Ok(Self { url: parsed, headers: Vec::new(), service_name: "harness".to_owned(), timeout })
    }

    /// One more header of every request, such as the key of a hosted collector. Its value is shown nowhere.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// More headers, in the form of the standard variable `OTEL_EXPORTER_OTLP_HEADERS`:
    /// `name=value,name=value`, where `%20` stands for a space.
    ///
    /// # Errors
    /// [`OtlpError::Header`] when an entry has no `=` or no name.
    pub fn headers(mut self, text: &str) -> Result<Self, OtlpError> {
        let entries = text.split(',').map(str::trim).enumerate().filter(|(_, entry)| !entry.is_empty());
        for (at, entry) in entries {
            let (name, value) = entry.split_once('=').ok_or(OtlpError::Header { entry: at + 1 })?;
            if name.trim().is_empty() {
                return Err(OtlpError::Header { entry: at + 1 });
            }
            self = self.header(name.trim(), Secret::new(decoded(value.trim())));
        }
        Ok(self)
    }

    /// The name of the program in the collector (`service.name`). Default `harness`.
    #[must_use]
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = name.into();
        self
    }

    /// How long the end waits for the collector at most; a request may take half of it. Default 4 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Host, port and path, for messages: a query may hold a secret.
    pub(super) fn shown(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}{}", self.url.host_str().unwrap_or_default(), self.url.path())
    }

    /// Whether the collector is on this machine, which no proxy can reach for us.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    pub(super) fn exposed_headers(&self) -> HashMap<String, String> {
        self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
    }
}

/// `text` with the bytes that `%XX` stands for; what is no such sign stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(value) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(value);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let told = OtlpOptions::new(url).map(|options| options.url.to_string());
        assert_eq!(told.unwrap_or_else(|error| error.to_string()), expected);
    }

    #[test]
    fn a_base_and_the_whole_address_are_equal() {
        check("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces");
        check("http://127.0.0.1:4318/v1/traces/", "http://127.0.0.1:4318/v1/traces");
        check("https://h/otlp?team=1", "https://h/otlp/v1/traces?team=1");
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_credentials() {
        check(
            "h:4318",
            "the collector's address `h:4318` cannot be used: its scheme is neither http nor https",
        );
        check("", "the collector's address `` cannot be used: relative URL without a base");
        check(
            "http://me:s3cret@h?k=s3cret",
            "the collector's address `h` cannot be used: it holds a user name or password; send them as a header",
        );
    }

    #[track_caller]
    fn check_headers(text: &str, expected: Result<&[(&str, &str)], usize>) {
        let told = OtlpOptions::new("http://h").unwrap().headers(text);
        match (told, expected) {
            (Ok(options), Ok(expected)) => {
                let told: Vec<_> =
                    options.headers.iter().map(|(name, value)| (&**name, value.expose())).collect();
                assert_eq!(told, expected);
            }
            (Err(error), Err(entry)) => assert_eq!(error, OtlpError::Header { entry }),
            (told, expected) => panic!("{told:?} is not {expected:?}"),
        }
    }

    #[test]
    fn headers_are_read_as_the_standard_variable_has_them() {
        check_headers("", Ok(&[]));
        check_headers("a=b", Ok(&[("a", "b")]));
        check_headers(" a = b%20c , d=e=f ,", Ok(&[("a", "b c"), ("d", "e=f")]));
        check_headers("a=100%", Ok(&[("a", "100%")]));
        check_headers("a=b,s3cret", Err(2));
        check_headers("=s3cret", Err(1));
    }

    #[test]
    fn values_of_headers_and_queries_are_shown_nowhere() {
        let options = OtlpOptions::new("http://h/?k=s3cret").unwrap().header("x-key", Secret::new("s3cret"));
        let shown = format!("{options:?}");
        assert!(shown.contains("x-key") && !shown.contains("s3cret"), "{shown}");
    }
}
