//! Who may ask.

use harness_server::{ServerError, ServerOptions};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};

use crate::support::{Desk, Server};

const TOKEN: &str = "0123456789abcdef-secret";

async fn with_token() -> Server {
    Desk::new().serve_with(|options| options.token(TOKEN).unwrap()).await
}

#[tokio::test]
async fn only_who_has_the_token_is_served() {
    let server = with_token().await;
    let client = &server.client;
    for given in [
        None,
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(format!("Basic {TOKEN}")),
        Some(format!("Bearer {TOKEN}x")),
        Some(format!("Bearer {}", &TOKEN[1..])),
        Some("Bearer 0123456789abcdef-Secret".to_owned()),
    ] {
        let mut request = client.request(Method::GET, "/v1/threads");
        if let Some(given) = &given {
            request = request.header(AUTHORIZATION, given);
        }
        let refused = client.send(request).await;
        assert_eq!((refused.status, refused.kind()), (401, "server.token"), "{given:?}");
        assert!(!refused.body.to_string().contains(TOKEN));
    }
    for scheme in ["Bearer", "bearer"] {
        let request =
            client.request(Method::GET, "/v1/threads").header(AUTHORIZATION, format!("{scheme} {TOKEN}"));
        assert_eq!(client.send(request).await.status, 200);
    }
    for open in ["/v1/health", "/openapi.json"] {
        assert_eq!(client.get(open).await.status, 200, "{open}");
    }
    assert_eq!(client.get("/v1/nothing").await.status, 401, "nobody learns what is there");
    server.end().await;
}

#[tokio::test]
async fn what_asks_under_another_name_is_refused() {
    let server = Desk::new().serve_with(|options| options.allow_host("agents.example.com")).await;
    let client = &server.client;
    for (host, status) in [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:8787", 200),
        ("agents.example.com", 200),
        ("evil.example.com", 403),
        ("localhost.evil.example.com", 403),
    ] {
        let reply = client.send(client.request(Method::GET, "/v1/threads").header(HOST, host)).await;
        assert_eq!(reply.status, status, "{host}: {}", reply.body);
    }
    server.end().await;
}

#[tokio::test]
async fn pages_are_kept_out_unless_their_origin_is_allowed() {
    const PAGE: &str = "https://app.example.com";
    let server = Desk::new().serve().await;
    for origin in [PAGE, "null", "http://localhost:1"] {
        let request = server.client.request(Method::POST, "/v1/threads").header(ORIGIN, origin);
        let refused = server.client.send(request).await;
        assert_eq!((refused.status, refused.kind()), (403, "server.origin_refused"), "{origin}");
    }
    server.end().await;

    let server =
        Desk::new().serve_with(|options| options.token(TOKEN).unwrap().allow_origin(PAGE).unwrap()).await;
    let ask = async |origin: &'static str, method: Method| -> (u16, HeaderMap) {
        let request = server.client.request(method, "/v1/threads").header(ORIGIN, origin);
        let request = request.header("Access-Control-Request-Method", "POST");
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.headers().clone())
    };
    let (status, headers) = ask(PAGE, Method::OPTIONS).await;
    assert_eq!((status, &headers["access-control-allow-origin"]), (200, &PAGE.parse().unwrap()));
    let (status, headers) = ask(PAGE, Method::GET).await;
    assert_eq!(status, 401, "an origin is no token");
    assert_eq!(&headers["access-control-allow-origin"], PAGE);
    let (status, headers) = ask("https://evil.example.com", Method::GET).await;
    assert_eq!(status, 403);
    assert!(!headers.contains_key("access-control-allow-origin"));
    server.end().await;
}

#[test]
fn others_than_this_machine_need_a_token() {
    let open = ServerOptions::new();
    for (address, allowed) in
        [("127.0.0.1:8787", true), ("[::1]:8787", true), ("0.0.0.0:8787", false), ("192.168.0.7:80", false)]
    {
        let address = address.parse().unwrap();
        assert_eq!(open.check(address).is_ok(), allowed, "{address}");
        assert!(open.clone().token(TOKEN).unwrap().check(address).is_ok());
    }
    let error = open.check("0.0.0.0:80".parse().unwrap()).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        (
            "cannot listen on 0.0.0.0:80 without a bearer token: any client on the network could use it",
            "server.token_required"
        )
    );
}

#[test]
fn tokens_and_origins_that_protect_nothing_are_refused() {
    for token in ["", "short", "0123456789 abcdef", "0123456789abcdefä", "0123456789abcdef\n"] {
        assert!(matches!(ServerOptions::new().token(token), Err(ServerError::WeakToken)), "{token:?}");
    }
    for origin in ["*", "app.example.com", "https://*", "https://app.example.com/", "ftp://x", "null"] {
        let refused = ServerOptions::new().allow_origin(origin);
        assert!(matches!(refused, Err(ServerError::Origin { .. })), "{origin}");
    }
}

#[test]
fn the_token_is_shown_nowhere() {
    let shown = format!("{:?}", ServerOptions::new().token(TOKEN).unwrap());
    assert!(!shown.contains(TOKEN), "{shown}");
}
