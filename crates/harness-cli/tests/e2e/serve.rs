//! The release program as a server: the description of its routes is one that a validator takes, and requests
//! made from it find no answer that it does not describe.

use std::fs;

use rustix::process::Signal;

use crate::support::{Running, harness, root};
use crate::{EXAMPLE, LONG, installed, other, ran};

const DESCRIPTION: &str = "docs/reference/openapi.json";

/// Requests are about a thread that is there.
const CONFIG: &str = "[parameters]\n\"path.thread\" = \"ada\"\n";

/// What is checked, and for how long. Streams never end by themselves, so they are left out; so is the end of the
/// thread.
const ARGUMENTS: &[&str] = &[
    "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
    "--exclude-path-regex=/(events|response)$",
    "--exclude-operation-id=deleteThread",
    "--phases=examples,coverage,fuzzing",
    "--max-examples=20",
    "--seed=1",
    "--request-timeout=30",
    "--no-color",
];

#[test]
fn a_validator_takes_the_description() {
    let folder = installed("serve");
    let mut validator = other(folder.join("venv/bin/openapi-spec-validator"), &folder);
    validator.arg(root().join(DESCRIPTION));
    ran(validator);
}

#[test]
fn the_server_answers_as_its_description_says() {
    let folder = installed("serve");
    let server = Running::start(harness(&root(), &["serve", EXAMPLE, "--listen", "127.0.0.1:0"]));
    let (server, line) = server.line("the address of the server");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("the server says {line:?}"));
    create(url);
    fs::write(folder.join("schemathesis.toml"), CONFIG).unwrap();
    let mut fuzzer = other(folder.join("venv/bin/schemathesis"), &folder);
    fuzzer.args(["run", &format!("{url}/openapi.json")]).args(ARGUMENTS);
    ran(fuzzer);
    server.signal(Signal::TERM);
    assert_eq!(server.end_in(LONG).code, Some(0));
}

/// Makes the thread.
fn create(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{url}/v1/threads")).json(&serde_json::json!({ "id": "ada" }));
    runtime.block_on(async { request.send().await.unwrap().error_for_status().unwrap() });
}
