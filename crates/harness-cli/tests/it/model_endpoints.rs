//! Models of the registry file: what their endpoints receive, and what comes back.

use std::fs;

use crate::cookbook::{blocks, pages};
use crate::models::write_keys;
use crate::support::{Output, Project, Reply, Running, Server};

/// A registry of the cookbook whose endpoint is `server`.
fn registry(server: &Server, file: &str, host: &str) -> String {
    let page = fs::read_to_string(pages().join("model-endpoints.md")).unwrap();
    let (_, text) = blocks(&page).into_iter().find(|(info, _)| *info == format!("yaml {file}")).unwrap();
    assert!(text.contains(host), "{text}");
    text.replace(&format!("https://{host}"), server.url.trim_end_matches("/v1"))
}

/// Adds a registry's models to the project's own.
fn declare(project: &Project, registry: &str) {
    let models = registry.strip_prefix("version: 1\n").unwrap();
    project.write("registry.yaml", &(project.read("registry.yaml") + models));
}

#[track_caller]
fn run(project: &Project, model: &str, keys: &[(&str, &str)]) -> Output {
    let mut command = project.command(&["run", "harness.yaml", "hello", "--model", model]);
    command.envs(keys.iter().copied());
    let output = Running::start(command).end();
    for (_, key) in keys {
        assert!(!output.stdout.contains(key) && !output.stderr.contains(key), "{output:?}");
    }
    output
}

/// Runs a model of the cookbook and checks what its endpoint receives.
#[track_caller]
fn check(file: &str, host: &str, model: &str, key: &str, uri: &str, headers: [&str; 2], settings: &str) {
    let server = Server::start([Reply::text("streamed back")]);
    let project = Project::plain();
    declare(&project, &registry(&server, file, host));
    let output = run(&project, model, &[(key, "s3cret-key")]);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "streamed back"), "{}", output.stderr);
    let (asked, sent) = server.heads().remove(0);
    assert_eq!(asked, uri);
    let [name, value] = headers;
    assert_eq!(sent.get(name).unwrap(), value);
    let other = if name == "authorization" { "api-key" } else { "authorization" };
    assert!(sent.get(other).is_none(), "{sent:?}");
    let body = &server.requests()[0];
    assert_eq!(
        (&body["stream"], body["messages"].as_array().unwrap().last().unwrap()["content"].as_str()),
        (&true.into(), Some("hello"))
    );
    let mut shown = serde_json::json!({ "model": body["model"] });
    if let Some(effort) = body.get("reasoning_effort") {
        shown["reasoning_effort"] = effort.clone();
    }
    assert_eq!(shown.to_string(), settings);
}

#[test]
fn azure_openai_receives_the_api_key_in_its_own_header() {
    let host = "YOUR-RESOURCE.openai.azure.com";
    check(
        "azure.yaml",
        host,
        "azure",
        "AZURE_OPENAI_API_KEY",
        "/openai/v1/chat/completions",
        ["api-key", "s3cret-key"],
        r#"{"model":"YOUR-DEPLOYMENT"}"#,
    );
    check(
        "azure-dated.yaml",
        host,
        "azure",
        "AZURE_OPENAI_API_KEY",
        "/openai/deployments/YOUR-DEPLOYMENT/chat/completions?api-version=2024-10-21",
        ["api-key", "s3cret-key"],
        r#"{"model":"azure"}"#,
    );
}

#[test]
fn gemini_receives_a_bearer_token_and_the_settings() {
    check(
        "gemini.yaml",
        "generativelanguage.googleapis.com",
        "gemini",
        "GEMINI_API_KEY",
        "/v1beta/openai/chat/completions",
        ["authorization", "Bearer s3cret-key"],
        r#"{"model":"gemini-2.5-flash","reasoning_effort":"low"}"#,
    );
}

#[test]
fn bedrock_receives_a_bearer_token() {
    check(
        "bedrock.yaml",
        "bedrock-runtime.us-west-2.amazonaws.com",
        "bedrock",
        "AWS_BEARER_TOKEN_BEDROCK",
        "/openai/v1/chat/completions",
        ["authorization", "Bearer s3cret-key"],
        r#"{"model":"openai.gpt-oss-20b-1:0"}"#,
    );
}

#[test]
fn descriptors_name_models_of_the_registry_file() {
    let server = Server::start([Reply::text("ok")]);
    let project = Project::plain();
    let descriptor = project.read("harness.yaml").replace("model: scripted", "model: house");
    project.write("harness.yaml", &descriptor);
    let url = &server.url;
    declare(
        &project,
        &format!(
            "version: 1\nmodels:\n  house: {{ base_url: '{url}', model: m, headers: {{ x-team: support }} }}\n"
        ),
    );
    let output = Running::start(project.command(&["run", "harness.yaml", "hello"])).end();
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "ok"), "{}", output.stderr);
    assert_eq!(server.requests()[0]["model"], "m");
    assert_eq!(server.heads()[0].1.get("x-team").unwrap(), "support");
}

#[test]
fn fallbacks_retries_and_key_files_work_as_declared() {
    let failing = Server::start([
        Reply::status(503, r#"{"error":{"message":"down"}}"#),
        Reply::status(503, r#"{"error":{"message":"down"}}"#),
    ]);
    let other = Server::start([Reply::text("second")]);
    let project = Project::plain();
    write_keys(&project, "key", "s3cret-key\n");
    declare(
        &project,
        &format!(
            "version: 1
models:
  first:
    base_url: {}
    retry: {{ attempts: 2, first_wait: 1ms }}
    fallback: [second]
  second: {{ base_url: '{}', auth: {{ file: key }} }}
",
            failing.url, other.url
        ),
    );
    let output = run(&project, "first", &[]);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "second"), "{}", output.stderr);
    assert_eq!((failing.requests().len(), failing.keys()), (2, vec!["no key".to_owned(); 2]));
    assert_eq!(
        (other.requests()[0]["model"].as_str(), other.keys()),
        (Some("second"), vec!["s3cret-key".to_owned()])
    );
}

#[test]
fn missing_keys_are_named() {
    let project = Project::plain();
    declare(
        &project,
        "version: 1\nmodels:\n  house: { base_url: 'http://127.0.0.1:9', auth: { env: HOUSE_KEY } }\n",
    );
    let output = run(&project, "house", &[]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("no API key for model `house`") && output.stderr.contains("HOUSE_KEY"),
        "{output:?}"
    );
}

/// A project with one declared model of each kind, and agents that name two more.
fn unusable() -> Project {
    Project::of(&[
        (
            "harness.yaml",
            "runtime: { entry_agent: desk }
agent_defaults: { model: openai/gpt-5 }
agents:
  desk: { instructions: Help., handoffs: [clerk] }
  clerk: { instructions: Help., handoffDescription: Knows., model: anthropic/claude-sonnet-4.5 }
",
        ),
        (
            "registry.yaml",
            "version: 1
models:
  house:
    base_url: http://127.0.0.1:9
    auth: { env: HOUSE_KEY }
    fallback: [openai/gpt-5-mini]
  file: { base_url: 'http://127.0.0.1:9', auth: { file: house.key } }
  open: { base_url: 'http://127.0.0.1:9', auth: none }
",
        ),
    ])
}

#[test]
fn check_warns_about_models_without_an_api_key() {
    let project = unusable();
    let mut command = project.command(&["check", "harness.yaml"]);
    command.env("ANTHROPIC_API_KEY", "s3cret-key");
    let output = Running::start(command).end();
    insta::assert_snapshot!(project.told(&output), @r"
    exit 0
    harness.yaml is valid: 2 agents, entry `desk`, 0 tools
    sha256:8d34cdd59d46aa86fc9e502be5b9de8c9be2786a83261a07ae59ac361c91fbd0
    ---
    registry.yaml:7:57: warning[cli.model_unusable]: no API key for model `file`: invalid key file [DIR]/house.key: cannot read it: No such file or directory (os error 2)
      |
    7 |   file: { base_url: 'http://127.0.0.1:[PORT]', auth: { file: house.key } }
      |                                                         ^^^^^^^^^
    help: check the path and its permissions

    registry.yaml:5:18: warning[cli.model_unusable]: no API key for model `house`: HOUSE_KEY is not set
      |
    5 |     auth: { env: HOUSE_KEY }
      |                  ^^^^^^^^^
    help: set HOUSE_KEY

    registry.yaml:6:15: warning[cli.model_unusable]: no API key for model `openai/gpt-5-mini`: neither OPENAI_API_KEY nor OPENROUTER_API_KEY is set
      |
    6 |     fallback: [openai/gpt-5-mini]
      |               ^^^^^^^^^^^^^^^^^^^
    help: set OPENAI_API_KEY or OPENROUTER_API_KEY

    harness.yaml:2:26: warning[cli.model_unusable]: no API key for model `openai/gpt-5`: neither OPENAI_API_KEY nor OPENROUTER_API_KEY is set
      |
    2 | agent_defaults: { model: openai/gpt-5 }
      |                          ^^^^^^^^^^^^
    help: set OPENAI_API_KEY or OPENROUTER_API_KEY; without it, runs use the demo model

    4 warnings
    ");
    let keys = [("OPENAI_API_KEY", "a"), ("ANTHROPIC_API_KEY", "b"), ("HOUSE_KEY", "c")];
    write_keys(&project, "house.key", "s3cret-key\n");
    let mut command = project.command(&["check", "harness.yaml"]);
    command.envs(keys);
    let output = Running::start(command).end();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn doctor_reports_models_without_an_api_key_as_a_fault() {
    let project = unusable();
    let mut command = project.command(&["doctor"]);
    command.env("OPENAI_API_KEY", "s3cret-key").env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let output = Running::start(command).end();
    let told = project.told(&output);
    let (_, keys) = told.split_once("keys\n").unwrap();
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(keys.split_once("endpoints\n").unwrap().0, @r"
    absent  OpenRouter: no API key
            fix: set OPENROUTER_API_KEY
    absent  Anthropic: no API key
            fix: set ANTHROPIC_API_KEY
    ok      OpenAI: API key in OPENAI_API_KEY
    fault   no API key for model `file`: invalid key file [DIR]/house.key: cannot read it: No such file or directory (os error 2) (registry.yaml:7:57)
            fix: check the path and its permissions
    fault   no API key for model `house`: HOUSE_KEY is not set (registry.yaml:5:18)
            fix: set HOUSE_KEY
    fault   no API key for model `anthropic/claude-sonnet-4.5`: neither ANTHROPIC_API_KEY nor OPENROUTER_API_KEY is set (harness.yaml:5:68)
            fix: set ANTHROPIC_API_KEY or OPENROUTER_API_KEY; without it, runs use the demo model
    ");
}

#[test]
fn a_machine_without_any_key_answers_with_the_demo_model_and_has_no_warning() {
    let project = unusable();
    fs::remove_file(project.path().join("registry.yaml")).unwrap();
    let output = project.harness(&["check", "harness.yaml"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn openai_speaks_the_responses_api_by_name() {
    let body = r#"{"id":"r","object":"response","status":"completed","model":"gpt-x","output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let server = Server::start([Reply::status(200, body)]);
    let project = Project::plain();
    let mut command = project.command(&["run", "harness.yaml", "hello", "--model", "openai-responses/gpt-x"]);
    command.env("OPENAI_API_KEY", "key-of-openai").env("OPENAI_BASE_URL", &server.url);
    let output = Running::start(command).end();
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "ok"), "{}", output.stderr);
    assert_eq!(server.heads()[0].0, "/v1/responses");
    assert_eq!(server.requests()[0]["model"], "gpt-x");
}
