//! From what went wrong to a `ModelFault`: a code, whether another attempt makes sense, and a message
//! that says what to do.

use std::borrow::Cow;

use harness_core::port::{ModelFault, ModelFaultCode as Code, Secret};
use harness_core::redact::KnownSecrets;
use harness_core::{Json, Millis};

use super::lenient::{Raw, text};
use super::reported::{self, ReportedError};
use super::setup::Protocol;
use crate::label::MAX_LABEL_BYTES;
use crate::{AdapterError, ApiKey};

/// Characters of a provider's own words that a message shows.
const SHOWN: usize = 500;

/// Error factory of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    /// Host and path, for messages.
    pub(crate) endpoint: String,
    /// Expected protocol.
    pub(crate) protocol: &'static Protocol,
    /// Name of the API key to check when it is rejected, for example `OPENROUTER_API_KEY`.
    pub(crate) key_name: String,
    /// Taken out of everything that is shown.
    pub(crate) key: Option<ApiKey>,
    /// API key of the request.
    pub(crate) key_of_request: Option<Secret>,
}

/// A reply other than 2xx.
#[derive(Debug, Default)]
pub(crate) struct ErrorReply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Millis>,
    pub(crate) location: Option<String>,
    pub(crate) body: String,
}

impl Faults {
    /// Errors of an endpoint without an API key.
    #[cfg(test)]
    pub(crate) fn of(endpoint: &str, protocol: &'static Protocol) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            protocol,
            key_name: "the API key".to_owned(),
            key: None,
            key_of_request: None,
        }
    }

    /// Errors of a request that may have its own API key.
    pub(crate) fn of_request(&self, key: Option<&Secret>) -> Cow<'_, Self> {
        match key {
            None => Cow::Borrowed(self),
            Some(key) => Cow::Owned(Self { key_of_request: Some(key.clone()), ..self.clone() }),
        }
    }

    /// A text without any key.
    pub(crate) fn without_keys(&self, text: &str) -> String {
        let keys = [self.key.as_ref().map(ApiKey::expose), self.key_of_request.as_ref().map(Secret::expose)];
        let mut known = KnownSecrets::new(1, "[key]");
        keys.into_iter().flatten().for_each(|key| known.add(key));
        known.text(text).into_owned()
    }

    /// A reply that is a JSON object, without any key.
    pub(crate) fn document(&self, text: &str) -> Option<Json> {
        Json::parse(&self.without_keys(text)).ok().filter(Json::is_object)
    }

    /// The endpoint answered with an error status.
    pub(crate) fn http(&self, reply: &ErrorReply) -> ModelFault {
        let error = error_of(&reply.body);
        let status = reply.status;
        let code = match (&error, status) {
            (_, 300..400) | (None, 404 | 405) => Code::Configuration,
            (error, _) => classify(Some(status), error.as_ref().unwrap_or(&ReportedError::default())),
        };
        let said = match (&error, &reply.location) {
            (Some(error), _) if !error.message.is_empty() => format!(": {}", self.shown(&error.message)),
            (_, Some(location)) => {
                let location = location.split('?').next().unwrap_or_default();
                format!(": it redirects to {}", self.shown(location))
            }
            _ => String::new(),
        };
        let lasting = error.as_ref().is_none_or(|error| !is_temporary_budget(status, error));
        let fault = ModelFault::new(
            code,
            format!(
                "{} answered with HTTP {status}{said}; {}",
                self.endpoint,
                self.advice(code, reply.retry_after)
            ),
        );
        let (http_status, body) = (Some(status), self.document(&reply.body));
        let fault = ModelFault { http_status, retry_after: reply.retry_after, reply: body, ..fault };
        let exhausted = code == Code::CreditsExhausted && lasting;
        if (transient_status(status) && !exhausted) || !lasting { fault.transient() } else { fault }
    }

    /// Error inside a response that started with status 200.
    pub(crate) fn reported(&self, error: &ReportedError) -> ModelFault {
        let status = error.code.as_deref().and_then(|code| code.parse::<u16>().ok());
        let status = status.filter(|status| (400..600).contains(status));
        let code = classify(status, error);
        let said = if error.message.is_empty() { "no message" } else { &error.message };
        let provider = error.provider.as_deref().map(|name| format!(" (provider {})", self.shown(name)));
        let mut fault = ModelFault::new(
            code,
            format!(
                "{} reported an error{}: {}; {}",
                self.endpoint,
                provider.unwrap_or_default(),
                self.shown(said),
                self.advice(code, None)
            ),
        );
        fault.http_status = status;
        let passes = matches!(code, Code::RateLimited | Code::Timeout | Code::Provider);
        if passes || transient(error) { fault.transient() } else { fault }
    }

    /// The connection could not be made, or broke.
    pub(crate) fn transport(&self, error: &reqwest::Error) -> ModelFault {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let happened = if error.is_connect() { "could not be reached" } else { "broke the connection" };
        let text = self.shown(&cause.to_string());
        let advice = self.advice(Code::Network, None);
        ModelFault::new(Code::Network, format!("{} {happened}: {text}; {advice}", self.endpoint)).transient()
    }

    /// Nothing came, or the answer was not complete, in time.
    pub(crate) fn timeout(&self, what: &str, after: Millis) -> ModelFault {
        let advice = self.advice(Code::Timeout, None);
        ModelFault::new(Code::Timeout, format!("{} {what} within {after}; {advice}", self.endpoint))
            .transient()
    }

    /// The stream ended without a finish reason and without `[DONE]`.
    pub(crate) fn cut(&self) -> ModelFault {
        let advice = self.advice(Code::Network, None);
        let text = format!("{} ended the answer before it was complete; {advice}", self.endpoint);
        ModelFault::new(Code::Network, text).transient()
    }

    /// The model's provider failed without a word.
    pub(crate) fn unexplained(&self) -> ModelFault {
        let advice = self.advice(Code::Provider, None);
        let text = format!("{} ended the answer with an unexplained error; {advice}", self.endpoint);
        ModelFault::new(Code::Provider, text).transient()
    }

    /// Events came that cannot be read. What they would have added is missing, so the answer is not used.
    pub(crate) fn undecoded(&self, first: &str, count: u64) -> ModelFault {
        let more = match count.saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.protocol(&format!(
            "an event that is not a valid {}: `{}`{more}",
            self.protocol.reply,
            self.shown(first)
        ))
    }

    /// Error for a reply that is not of the protocol.
    pub(crate) fn protocol(&self, what: &str) -> ModelFault {
        let advice = self.advice(Code::Protocol, None);
        ModelFault::new(Code::Protocol, format!("{} sent {what}; {advice}", self.endpoint))
    }

    /// A bound of the reply was passed.
    pub(crate) fn too_large(&self, error: &AdapterError) -> ModelFault {
        let advice = if matches!(error, AdapterError::TooLarge { limit: MAX_LABEL_BYTES, .. }) {
            self.advice(Code::Protocol, None)
        } else {
            "raise the reply limits if this size is expected".to_owned()
        };
        ModelFault::new(Code::Protocol, format!("{} sent too much: {error}; {advice}", self.endpoint))
    }

    /// Error for a cancelled request.
    pub(crate) fn cancelled(&self) -> ModelFault {
        ModelFault::new(Code::Cancelled, format!("the request to {} was cancelled", self.endpoint))
    }

    /// Hint for an error.
    fn advice(&self, code: Code, retry_after: Option<Millis>) -> String {
        match code {
            Code::AuthFailed => format!("check {}", self.key_name),
            Code::CreditsExhausted => "add credits to the account or use another key".to_owned(),
            Code::RateLimited => match retry_after {
                Some(wait) => format!("try again after {wait}"),
                None => "try again later or send fewer requests at once".to_owned(),
            },
            Code::ModelNotFound => "check the name of the model and that the key may use it".to_owned(),
            Code::InvalidRequest => "check the model settings and the tools' schemas".to_owned(),
            Code::ContextLengthExceeded => {
                "shorten the conversation or use a model with a larger window".to_owned()
            }
            Code::Timeout => "try again, or allow more time".to_owned(),
            Code::Network => "check the base URL and the network, then try again".to_owned(),
            Code::Provider => "the error is the provider's: try again later or use another model".to_owned(),
            Code::Protocol | Code::Configuration => {
                format!("check that the base URL is that of {}", self.protocol.endpoint)
            }
            Code::Recording | Code::Unknown | _ => "see the provider's documentation".to_owned(),
        }
    }

    /// Foreign text as it may be shown: without the key, on one line, not endless.
    fn shown(&self, text: &str) -> String {
        let clean = self.without_keys(text);
        let mut out: String = clean
            .chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .take(SHOWN)
            .collect();
        if clean.chars().nth(SHOWN).is_some() {
            out.push('…');
        }
        out.trim().trim_end_matches('.').to_owned()
    }
}

/// Whether another attempt may not meet this error.
pub(crate) fn transient(error: &ReportedError) -> bool {
    let code = error.code.as_deref().unwrap_or_default();
    let status = code.parse::<u16>().ok();
    let named = [error.error_type.as_deref().unwrap_or_default(), code];
    status.is_some_and(|status| transient_status(status) || is_temporary_budget(status, error))
        || named.iter().any(|name| {
            matches!(
                *name,
                "rate_limit_exceeded" | "provider_overloaded" | "provider_unavailable" | "timeout" | "server"
            )
        })
}

fn transient_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..)
}

/// A 402 that only says that too many paid requests are in flight.
fn is_temporary_budget(status: u16, error: &ReportedError) -> bool {
    status == 402 && error.limit_source.as_deref() == Some("openrouter_in_flight_budget")
}

/// The error of a body: `{"error": …}`, or one of the forms that other servers use.
fn error_of(body: &str) -> Option<ReportedError> {
    #[derive(serde::Deserialize)]
    struct Reply<'a> {
        #[serde(borrow, default)]
        error: Raw<'a>,
        #[serde(borrow, default)]
        message: Raw<'a>,
        #[serde(borrow, default)]
        detail: Raw<'a>,
    }
    let reply: Reply<'_> = serde_json::from_str(body).ok()?;
    let bare = || {
        let message = text(reply.message).or_else(|| text(reply.detail))?;
        Some(ReportedError { message, ..ReportedError::default() })
    };
    reported::error(reply.error).or_else(bare).or_else(|| Some(ReportedError::default()))
}

/// Classifies an error: by its name first, then by its text, then by the status, which covers many
/// errors.
fn classify(status: Option<u16>, error: &ReportedError) -> Code {
    let named = [error.code.as_deref(), error.error_type.as_deref()];
    let by_name = named.into_iter().flatten().find_map(code_of_name);
    let in_flight = status.is_some_and(|status| is_temporary_budget(status, error));
    let by_name = match (in_flight, error.moderated) {
        (true, _) => Some(Code::RateLimited),
        (_, true) => Some(Code::InvalidRequest),
        _ => by_name,
    };
    // A name for whatever is wrong with a request tells less than words or a status.
    let is_request = named.contains(&Some("invalid_request_error"));
    match by_name.or_else(|| code_of_words(status, &error.message)) {
        Some(code) => code,
        None if status.is_none() && is_request => Code::InvalidRequest,
        None => code_of_status(status),
    }
}

fn code_of_name(name: &str) -> Option<Code> {
    Some(match name {
        "authentication"
        | "authentication_error"
        | "invalid_api_key"
        | "permission_denied"
        | "permission_error" => Code::AuthFailed,
        "payment_required" | "insufficient_quota" | "billing_not_active" | "billing_error" => {
            Code::CreditsExhausted
        }
        "rate_limit_exceeded" | "rate_limit_error" => Code::RateLimited,
        "context_length_exceeded" | "token_limit_exceeded" | "request_too_large" => {
            Code::ContextLengthExceeded
        }
        "not_found" | "not_found_error" | "model_not_found" => Code::ModelNotFound,
        "timeout" | "timeout_error" => Code::Timeout,
        "provider_overloaded"
        | "provider_unavailable"
        | "server"
        | "server_error"
        | "overloaded_error"
        | "api_error" => Code::Provider,
        "invalid_request"
        | "invalid_prompt"
        | "max_tokens_exceeded"
        | "string_too_long"
        | "precondition_failed"
        | "payload_too_large"
        | "unprocessable"
        | "content_policy_violation"
        | "refusal"
        | "invalid_image"
        | "image_too_large"
        | "image_too_small"
        | "unsupported_image_format"
        | "image_not_found"
        | "image_download_failed" => Code::InvalidRequest,
        _ => return None,
    })
}

fn code_of_words(status: Option<u16>, message: &str) -> Option<Code> {
    const THROTTLED: [&str; 3] = ["rate limit", "too many requests", "throttl"];
    const TOO_LONG: [&str; 9] = [
        "context length",
        "context window",
        "context_length",
        "maximum context",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "too many tokens",
        "token limit",
    ];
    const NO_MONEY: [&str; 4] = ["credits", "afford", "insufficient balance", "insufficient funds"];
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let about_money = matches!(status, None | Some(400 | 402 | 403 | 429));
    let about_length = matches!(status, None | Some(400 | 413 | 422 | 500));
    if about_money && says(&NO_MONEY) {
        return Some(Code::CreditsExhausted);
    }
    (about_length && says(&TOO_LONG) && !says(&THROTTLED)).then_some(Code::ContextLengthExceeded)
}

fn code_of_status(status: Option<u16>) -> Code {
    match status {
        Some(400 | 413 | 422) => Code::InvalidRequest,
        Some(401 | 403) => Code::AuthFailed,
        Some(402) => Code::CreditsExhausted,
        Some(404) => Code::ModelNotFound,
        Some(408 | 524) => Code::Timeout,
        Some(429) => Code::RateLimited,
        Some(409 | 425 | 500..) => Code::Provider,
        _ => Code::Unknown,
    }
}

/// The wait that a reply asks for: `retry-after-ms`, else `retry-after` in seconds or as a date. A date
/// is read against the reply's own `date`, so that no clock has to agree with the server's.
pub(crate) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Millis> {
    let exact = header("retry-after-ms").and_then(|text| text.trim().parse().ok()).map(Millis);
    exact.or_else(|| {
        let text = header("retry-after")?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(Millis(seconds.saturating_mul(1_000)));
        }
        let until = httpdate::parse_http_date(text).ok()?;
        let now = httpdate::parse_http_date(header("date")?.trim()).ok()?;
        Some(until.duration_since(now).map_or(Millis(0), Millis::from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::setup::Auth;

    static PROTOCOL: Protocol = Protocol {
        endpoint: "an OpenAI-compatible endpoint",
        reply: "chat completion",
        path: "",
        reserved: &[],
        auth: Auth::Bearer,
        headers: &[],
        think: |_, _| {},
    };

    fn faults() -> Faults {
        Faults {
            protocol: &PROTOCOL,
            endpoint: "host/v1/chat/completions".to_owned(),
            key_name: "OPENROUTER_API_KEY".to_owned(),
            key: Some(ApiKey::new("sk-secret")),
            key_of_request: None,
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, code: Code, transient: bool) -> String {
        let fault = faults().http(&ErrorReply { status, body: body.to_owned(), ..ErrorReply::default() });
        assert_eq!((fault.code, fault.transient), (code, transient), "{}", fault.message);
        assert_eq!(fault.http_status, Some(status));
        fault.message
    }

    fn said(message: &str) -> String {
        format!(r#"{{"error":{{"message":"{message}"}}}}"#)
    }

    #[test]
    fn a_status_decides_when_nothing_else_does() {
        for (status, code, transient) in [
            (400, Code::InvalidRequest, false),
            (401, Code::AuthFailed, false),
            (402, Code::CreditsExhausted, false),
            (403, Code::AuthFailed, false),
            (404, Code::ModelNotFound, false),
            (408, Code::Timeout, true),
            (409, Code::Provider, true),
            (413, Code::InvalidRequest, false),
            (422, Code::InvalidRequest, false),
            (425, Code::Provider, true),
            (429, Code::RateLimited, true),
            (500, Code::Provider, true),
            (502, Code::Provider, true),
            (503, Code::Provider, true),
            (524, Code::Timeout, true),
            (529, Code::Provider, true),
            (418, Code::Unknown, false),
        ] {
            check(status, &said("no"), code, transient);
        }
    }

    #[test]
    fn words_tell_money_and_length_apart_from_bad_parameters() {
        check(
            400,
            &said("This model's maximum context length is 8192 tokens"),
            Code::ContextLengthExceeded,
            false,
        );
        check(403, &said("Key limit exceeded: not enough credits"), Code::CreditsExhausted, false);
        check(429, &said("You can only afford 10 tokens"), Code::CreditsExhausted, false);
        check(429, &said("Rate limit: token limit per minute"), Code::RateLimited, true);
        check(400, &said("insufficient permissions"), Code::InvalidRequest, false);
    }

    #[test]
    fn a_name_decides_before_the_status() {
        let named = |code: &str| format!(r#"{{"error":{{"message":"x","code":"{code}"}}}}"#);
        check(400, &named("context_length_exceeded"), Code::ContextLengthExceeded, false);
        check(429, &named("insufficient_quota"), Code::CreditsExhausted, false);
        let moderated =
            r#"{"error":{"code":403,"message":"x","metadata":{"error_type":"content_policy_violation"}}}"#;
        check(403, moderated, Code::InvalidRequest, false);
        let flagged = r#"{"error":{"code":403,"message":"x","metadata":{"reasons":["violence"]}}}"#;
        check(403, flagged, Code::InvalidRequest, false);
    }

    #[test]
    fn a_budget_in_flight_is_temporary() {
        let body = r#"{"error":{"code":402,"message":"x","metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#;
        check(402, body, Code::RateLimited, true);
    }

    #[test]
    fn what_is_no_api_points_at_the_base_url() {
        let message = check(404, "<html>", Code::Configuration, false);
        assert!(
            message.ends_with("check that the base URL is that of an OpenAI-compatible endpoint"),
            "{message}"
        );
        let reply = ErrorReply {
            status: 301,
            location: Some("https://www/?key=x".to_owned()),
            ..ErrorReply::default()
        };
        let fault = faults().http(&reply);
        assert_eq!(fault.code, Code::Configuration);
        assert!(fault.message.contains("it redirects to https://www/;"), "{}", fault.message);
    }

    #[test]
    fn other_servers_write_their_errors_in_other_ways() {
        for body in [
            r#"{"error":"no such model"}"#,
            r#"{"message":"no such model"}"#,
            r#"{"detail":"no such model"}"#,
        ] {
            assert!(check(404, body, Code::ModelNotFound, false).contains("no such model"));
        }
    }

    #[test]
    fn foreign_words_are_shown_without_the_key_and_on_one_line() {
        let message = check(401, &said("bad key sk-secret\\u001b[31m\\nline."), Code::AuthFailed, false);
        assert_eq!(
            message,
            "host/v1/chat/completions answered with HTTP 401: bad key [key] [31m line; check OPENROUTER_API_KEY"
        );
        let long = check(500, &said(&"x".repeat(600)), Code::Provider, true);
        assert!(long.contains(&format!("{}…;", "x".repeat(500))), "{long}");
    }

    #[track_caller]
    fn check_wait(headers: &[(&str, &'static str)], expected: Option<u64>) {
        let wait =
            retry_after(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        assert_eq!(wait, expected.map(Millis));
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        check_wait(&[("retry-after", "7")], Some(7_000));
        check_wait(&[("retry-after", "7"), ("retry-after-ms", "250")], Some(250));
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        check_wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), date], Some(30_000));
        check_wait(&[("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT"), date], Some(0));
        check_wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None);
        check_wait(&[("retry-after", "soon")], None);
        check_wait(&[("retry-after", "18446744073709551615")], Some(u64::MAX));
        check_wait(&[], None);
    }
}
