//! The description of the routes.

use expect_test::expect_file;
use serde_json::Value;

use crate::support::Desk;

#[tokio::test]
async fn the_file_is_what_is_served() {
    let described = harness_server::openapi();
    expect_file!["../../../../docs/reference/openapi.json"].assert_eq(&described);
    let server = Desk::new().serve().await;
    let answered = server.client.get("/openapi.json").await.body;
    assert_eq!(answered, serde_json::from_str::<Value>(&described).unwrap());
    server.end().await;
}

#[tokio::test]
async fn every_operation_that_is_described_is_there_and_has_a_name() {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    let mut names = std::collections::BTreeSet::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert!(operation["summary"].is_string(), "{name} says what it does");
            // Threads that are not there: the route answers for them, and for none that is not a route.
            let path = path.replace("{thread}", "none").replace("{entry}", "e").replace("{approval}", "c");
            let path = path
                .replace("{model}", "none")
                .replace("{response}", "none")
                .replace("{conversation}", "none");
            let method: reqwest::Method = method.to_uppercase().parse().unwrap();
            let request = server.client.request(method.clone(), &path);
            let reply =
                server.client.send(request.header("Content-Type", "application/json").body("{}")).await;
            assert!(!["server.no_route", "server.no_method"].contains(&reply.kind()), "{method} {path}");
        }
    }
    assert_eq!(names.len(), 35);
    server.end().await;
}
