//! The page and the rendered description.

use reqwest::Method;

use crate::support::{Desk, Server};

const TOKEN: &str = "0123456789abcdef";

/// Content of a file of the page, whose headers are those of all of them.
async fn file(server: &Server, path: &str) -> String {
    let response = server.client.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path} requires no token");
    let policy = response.headers()["content-security-policy"].to_str().unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    response.text().await.unwrap()
}

/// Texts between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[tokio::test]
async fn every_file_that_the_page_names_is_served() {
    let server = Desk::new().serve_with(|options| options.token(TOKEN).unwrap()).await;
    let page = file(&server, "/").await;
    let docs = file(&server, "/docs").await;
    let trace = server.client.request(Method::GET, "/trace").send().await.unwrap().text().await.unwrap();
    let named = [&page, &docs, &trace].into_iter().flat_map(|text| between(text, "\"ui/", "\""));
    let mut files: Vec<String> = named.map(str::to_owned).collect();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(name) = files.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let text = file(&server, &format!("/ui/{name}")).await;
        assert!(!text.contains("innerHTML"), "{name}: every text is text");
        files.extend(between(&text, "from \"./", "\"").into_iter().map(str::to_owned));
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
    assert_eq!(server.client.get("/ui/none.js").await.status, 404);
    server.end().await;
}

#[tokio::test]
async fn the_page_has_no_inline_code_and_no_foreign_files() {
    let server = Desk::new().serve().await;
    for path in ["/", "/docs"] {
        let page = file(&server, path).await;
        for forbidden in [" style=", "<style", "onclick", "src=\"http", "href=\"http", "<script>"] {
            assert!(!page.contains(forbidden), "{path} has {forbidden}");
        }
    }
    server.end().await;
}

#[tokio::test]
async fn every_operation_is_in_the_rendered_description() {
    let server = Desk::new().serve().await;
    let page = file(&server, "/docs").await;
    let described = server.client.get("/openapi.json").await.body;
    for path in described["paths"].as_object().unwrap().values() {
        for operation in path.as_object().unwrap().values() {
            assert!(page.contains(&format!("id=\"{}\"", operation["operationId"].as_str().unwrap())));
        }
    }
    server.end().await;
}

#[tokio::test]
async fn the_page_of_the_server_itself_has_access() {
    let server = Desk::new().serve().await;
    let check = async |origin: &str, expected: u16| {
        let request = server.client.request(Method::POST, "/v1/threads").header("Origin", origin);
        assert_eq!(server.client.send(request).await.status, expected, "{origin}");
    };
    check(&server.url, 201).await;
    check("http://localhost:1", 403).await;
    check("https://example.com", 403).await;
    check("null", 403).await;
    server.end().await;
}

#[tokio::test]
async fn a_server_for_any_name_and_without_a_token_has_no_page_of_its_own() {
    let server = Desk::new().serve_with(harness_server::ServerOptions::allow_any_host).await;
    let request = server.client.request(Method::POST, "/v1/threads").header("Origin", &server.url);
    assert_eq!(server.client.send(request).await.kind(), "server.origin_refused");
    server.end().await;
}
