//! Access control: host names, origins of web pages, the bearer token, and concurrency.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::fault::Fault;

/// Accepted host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Names of this machine, and these, in lower case.
    Named(Vec<String>),
    /// All.
    Any,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Hosts {
    pub(crate) fn allow(&mut self, host: String) {
        if let Self::Named(names) = self {
            names.push(host.to_ascii_lowercase());
        }
    }

    fn allows(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Named(names) => {
                let name = without_port(host).to_ascii_lowercase();
                is_this_machine(&name) || names.contains(&name)
            }
        }
    }
}

fn is_this_machine(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

/// Paths without authentication, which reveal nothing about threads.
const OPEN: [&str; 3] = ["/v1/health", "/openapi.json", "/thread-events.schema.json"];

/// Admits or rejects a request, and logs the result.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let began = tokio::time::Instant::now();
    let response = match admitted(&app, &request) {
        Ok(()) => match app.begin_request() {
            Ok(_place) => next.run(request).await,
            Err(fault) => fault.into_response(),
        },
        Err(fault) => fault.into_response(),
    };
    let response = crate::openai::in_their_form(&path, response);
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(%method, path, status = response.status().as_u16(), milliseconds, "request");
    response
}

fn admitted(app: &App, request: &Request) -> Result<(), Fault> {
    let headers = request.headers();
    for name in [HOST, ORIGIN, AUTHORIZATION] {
        once(headers, &name)?;
    }
    let host = host(request)?;
    if !app.options.hosts.allows(host) {
        let message = format!("the host `{host}` is not allowed");
        let hint = "ask under localhost, or allow the name where the server is started";
        return Err(Fault::new(StatusCode::FORBIDDEN, "server.host_refused", message).hint(hint));
    }
    if let Some(origin) = headers.get(ORIGIN)
        && !app.options.origins.contains(origin)
        && !is_own(app, origin, host)
    {
        let origin = String::from_utf8_lossy(origin.as_bytes());
        let message = format!("pages of the origin `{origin}` are not allowed");
        let hint = "allow the origin where the server is started";
        return Err(Fault::new(StatusCode::FORBIDDEN, "server.origin_refused", message).hint(hint));
    }
    let path = request.uri().path();
    if !OPEN.contains(&path) && !crate::page::is_page(path) {
        known(app, headers)?;
    }
    Ok(())
}

/// Whether an origin is that of the server's own page. For a server that accepts any host name without a token, a foreign
/// name could lead to it.
fn is_own(app: &App, origin: &HeaderValue, host: &str) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let is_named = app.options.token.is_some() || matches!(app.options.hosts, Hosts::Named(_));
    is_named && name.is_some_and(|name| name.eq_ignore_ascii_case(host))
}

/// Rejects repeated headers that control access: implementations differ in which one counts, and a
/// proxy in front of this server may have checked a different one.
fn once(headers: &HeaderMap, name: &HeaderName) -> Result<(), Fault> {
    let count = headers.get_all(name).iter().count();
    if count <= 1 {
        return Ok(());
    }
    let message = format!("the request has {count} `{name}` headers");
    Err(Fault::new(StatusCode::BAD_REQUEST, "request.repeated_header", message).hint("send it once"))
}

/// Requested host. A host in the request line must equal the header.
fn host(request: &Request) -> Result<&str, Fault> {
    let fault = |kind, message: &str| Fault::new(StatusCode::BAD_REQUEST, kind, message);
    let named = match request.headers().get(HOST).map(|host| host.to_str()) {
        None => None,
        Some(Ok(host)) => Some(host),
        Some(Err(_)) => return Err(fault("request.host", "the `host` header is not visible ASCII")),
    };
    match (named, request.uri().authority().map(Authority::as_str)) {
        (Some(header), Some(target)) if !header.eq_ignore_ascii_case(target) => {
            Err(fault("request.host", "the request line and the `host` header name different hosts"))
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Err(fault("request.no_host", "the request does not name the host that it asks")),
    }
}

fn known(app: &App, headers: &HeaderMap) -> Result<(), Fault> {
    let Some(token) = &app.options.token else { return Ok(()) };
    let given = headers.get(AUTHORIZATION).map(axum::http::HeaderValue::as_bytes).unwrap_or_default();
    let given = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    let same = given.is_some_and(|(_, given)| given.ct_eq(token.expose_secret().as_bytes()).into());
    if same {
        return Ok(());
    }
    let message = if given.is_some() { "invalid bearer token" } else { "missing bearer token" };
    Err(Fault::new(StatusCode::UNAUTHORIZED, "server.token", message)
        .hint("send it with `Authorization: Bearer TOKEN`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expected: bool) {
        let mut hosts = Hosts::default();
        hosts.allow("Agents.example.com".to_owned());
        assert_eq!(hosts.allows(host), expected, "{host}");
        assert!(Hosts::Any.allows(host));
    }

    #[test]
    fn only_this_machine_and_allowed_names_are_asked() {
        for host in ["localhost", "LOCALHOST:8787", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[::1]"] {
            check(host, true);
        }
        check("agents.example.com:8787", true);
        for host in
            ["example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1:8787", "", ":80"]
        {
            check(host, false);
        }
    }
}
