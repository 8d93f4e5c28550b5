//! Where requests go.

use harness_core::display::mask_secrets;
use reqwest::Url;

use crate::AdapterError;

/// The URL of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    url: Url,
}

impl Endpoint {
    /// Takes a base URL (`https://host/api/v1`), to which the protocol's path is added, or the full
    /// endpoint; its query is kept, and `query` is added to it.
    pub(crate) fn parse(
        base: &str,
        protocol_path: &str,
        query: &[(String, String)],
    ) -> Result<Self, AdapterError> {
        let fault = |reason: String| AdapterError::BaseUrl {
            url: mask_secrets(&without_credentials(base)).into_owned(),
            reason,
        };
        let mut url = Url::parse(base.trim()).map_err(|error| fault(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault(format!("the scheme `{}` is neither http nor https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault("it holds a user name or password".to_owned()));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.ends_with(protocol_path) { path } else { path + protocol_path };
        url.set_path(&path);
        url.set_fragment(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(Self { url })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Host, port and path, for messages: a query may hold a secret.
    pub(crate) fn shown(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}{}", self.host(), self.url.path())
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Whether the host is this machine, which no proxy can reach for us.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// The URL without what may be a secret: everything before an `@`, and the query.
fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            let (start, end) = (url.get(..scheme), url.get(at.saturating_add(1)..));
            format!("{}://{}", start.unwrap_or_default(), end.unwrap_or_default())
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/chat/completions";

    #[track_caller]
    fn check(base: &str, expected: &str) {
        let endpoint = Endpoint::parse(base, PATH, &[]).map(|endpoint| endpoint.url().to_string());
        assert_eq!(endpoint.unwrap_or_else(|fault| fault.to_string()), expected);
    }

    #[test]
    fn a_base_url_and_the_full_endpoint_are_equal() {
        let full = "https://openrouter.ai/api/v1/chat/completions";
        check("https://openrouter.ai/api/v1", full);
        check("https://openrouter.ai/api/v1/", full);
        check(full, full);
        check(" https://openrouter.ai/api/v1/chat/completions/ ", full);
        check("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions");
    }

    #[test]
    fn queries_are_kept_and_extended() {
        check("https://h/v1?api-version=1", "https://h/v1/chat/completions?api-version=1");
        let more = [("b".to_owned(), "x y&z".to_owned())];
        let endpoint = Endpoint::parse("https://h/v1?a=1", PATH, &more).unwrap();
        assert_eq!(endpoint.url().as_str(), "https://h/v1/chat/completions?a=1&b=x+y%26z");
    }

    #[test]
    fn what_cannot_be_an_endpoint_is_refused_without_showing_credentials() {
        check("openrouter.ai", "the base URL `openrouter.ai` cannot be used: relative URL without a base");
        check(
            "ftp://h/v1",
            "the base URL `ftp://h/v1` cannot be used: the scheme `ftp` is neither http nor https",
        );
        check(
            "https://me:s3cret@h/v1?key=s3cret",
            "the base URL `https://h/v1` cannot be used: it holds a user name or password",
        );
        check(
            "htp:/user:PASSWORD@h",
            "the base URL `htp:/***@h` cannot be used: the scheme `htp` is neither http nor https",
        );
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for (base, expected) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://localhost/v1", true),
            ("https://openrouter.ai/api/v1", false),
        ] {
            assert_eq!(Endpoint::parse(base, PATH, &[]).unwrap().is_loopback(), expected, "{base}");
        }
    }
}
