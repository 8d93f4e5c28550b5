//! The transport over HTTP.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use harness_core::redact::KnownSecrets;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::child::MAX_MESSAGE;
use super::fault::McpFault;
use super::spec::McpHttp;

/// Maximum number of times that an interrupted event stream is resumed.
const RESUMED: usize = 3;

pub(super) type HttpTransport = StreamableHttpClientTransport<reqwest::Client>;

/// The transport to a server; nothing is sent yet.
pub(super) fn transport(http: &McpHttp, connect_timeout: Duration) -> Result<HttpTransport, McpFault> {
    let url = check_url(http)?;
    let headers = headers(http)?;
    let mut client = reqwest::Client::builder()
        // A redirect would take the headers to somebody else.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_timeout);
    if url.scheme() == "http" {
        // A system without certificates can still use a local server.
        client = client.tls_certs_only([]);
    }
    if is_loopback(&url) {
        client = client.no_proxy();
    }
    let client = client.build().map_err(|error| setting(format!("no HTTP client can be made: {error}")))?;
    let mut retry = ExponentialBackoff::default();
    retry.max_times = Some(RESUMED);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(MAX_MESSAGE);
    config.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn check_url(http: &McpHttp) -> Result<reqwest::Url, McpFault> {
    let url = reqwest::Url::parse(&http.url).map_err(|error| setting(format!("invalid `url`: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(setting(format!("its `url` begins with `{}:`, not with `https:`", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(setting("its `url` holds a user name or password; send them in a header".to_owned()));
    }
    Ok(url)
}

fn headers(http: &McpHttp) -> Result<HashMap<HeaderName, HeaderValue>, McpFault> {
    if let Some(name) = http.missing.first() {
        return Err(setting(format!("the variable `{name}`, from which a header comes, is not set")));
    }
    let header = |(name, value): &(String, String)| {
        let key: HeaderName = name.parse().map_err(|_| setting(format!("invalid header name `{name}`")))?;
        let mut value: HeaderValue = value
            .parse()
            .map_err(|_| setting(format!("the value of the header `{name}` is not allowed in one")))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    http.headers.iter().map(header).collect()
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn setting(problem: String) -> McpFault {
    McpFault::Setting { problem }
}

/// A failed request with all its causes.
pub(super) fn failed(http: &McpHttp, error: &(dyn Error + 'static), secrets: &KnownSecrets) -> McpFault {
    let mut problem = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let text = error.to_string();
        // Libraries repeat a cause in the text of what it caused.
        if !problem.contains(&text) {
            problem.push_str(if problem.is_empty() { "" } else { ": " });
            problem.push_str(&text);
        }
        cause = cause_of(error);
    }
    let shown = http.shown();
    let problem = problem.replace(&http.url, &shown).replace(&sent_to(http), &shown);
    let problem = secrets.text(problem.trim_end_matches([':', ' ']));
    McpFault::Http { url: shown, problem: super::short(&problem) }
}

/// The address as the HTTP library names it.
fn sent_to(http: &McpHttp) -> String {
    reqwest::Url::parse(&http.url).map_or_else(|_| http.url.clone(), Into::into)
}

/// Whether a request never reached the server.
pub(super) fn never_arrived(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        cause = cause_of(error);
    }
    false
}

/// Cause of an error. The transport's own error has its cause in its text, not as its source.
fn cause_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(inner)) => Some(inner),
        _ => error.source(),
    }
}
