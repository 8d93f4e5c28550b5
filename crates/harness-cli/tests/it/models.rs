//! Which model is asked, and with which key.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Output, Project, Reply, Running, Server};

/// The addresses of all providers are the test's own.
const ADDRESSES: [&str; 5] = [
    "OPENROUTER_BASE_URL",
    "OPENAI_BASE_URL",
    "OLLAMA_BASE_URL",
    "LMSTUDIO_BASE_URL",
    "HARNESS_LOCAL_BASE_URL",
];

/// A run with these keys in the environment.
fn ask(project: &Project, server: &Server, keys: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = project.command(&[&["run", "harness.yaml", "hello"], arguments].concat());
    command.envs(ADDRESSES.map(|name| (name, &server.url))).envs(keys.iter().copied());
    Running::start(command).end()
}

/// Which model was asked, and with which key.
#[track_caller]
fn check(keys: &[(&str, &str)], arguments: &[&str], expected: &str) {
    check_in(&Project::plain(), keys, arguments, expected);
}

#[track_caller]
fn check_in(project: &Project, keys: &[(&str, &str)], arguments: &[&str], expected: &str) {
    let server = Server::start([Reply::text("ok")]);
    let output = ask(project, &server, keys, arguments);
    let models = server.requests().into_iter().map(|request| request["model"].as_str().unwrap().to_owned());
    let asked: Vec<_> = models.zip(server.keys()).map(|(model, key)| format!("{model} with {key}")).collect();
    assert_eq!((asked.join(", ").as_str(), output.code), (expected, Some(0)), "{}", output.stderr);
    for (_, key) in keys {
        assert!(!output.stdout.contains(key) && !output.stderr.contains(key), "{output:?}");
    }
}

const OPENROUTER: (&str, &str) = ("OPENROUTER_API_KEY", "key-of-openrouter");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "key-of-openai");
const OWN: (&str, &str) = ("HARNESS_API_KEY", "key-of-my-own");

#[test]
fn the_name_says_who_is_asked() {
    check(&[OPENAI, OPENROUTER], &["--model", "openai/gpt-x"], "gpt-x with key-of-openai");
    check(&[OPENROUTER], &["--model", "openai/gpt-x"], "openai/gpt-x with key-of-openrouter");
    check(
        &[OPENAI, OPENROUTER],
        &["--model", "openai/gpt-x:free"],
        "openai/gpt-x:free with key-of-openrouter",
    );
    check(
        &[OPENAI, OPENROUTER],
        &["--model", "openrouter/openai/gpt-x"],
        "openai/gpt-x with key-of-openrouter",
    );
    check(&[OPENROUTER], &["--model", "openrouter/auto"], "openrouter/auto with key-of-openrouter");
    check(&[OPENROUTER], &["--model", "somebody/else"], "somebody/else with key-of-openrouter");
    check(&[OPENROUTER], &[], "scripted with key-of-openrouter");
}

#[test]
fn a_model_on_this_machine_needs_no_key() {
    check(&[OPENAI], &["--model", "ollama/tiny:1b"], "tiny:1b with no key");
    check(&[], &["--model", "lmstudio/tiny"], "tiny with no key");
    check(&[OWN], &["--model", "local/tiny"], "tiny with key-of-my-own");
}

#[test]
fn the_models_of_a_descriptor_are_asked_in_the_same_way() {
    let project = Project::plain();
    let descriptor = project.read("harness.yaml").replace("model: scripted", "model: ollama/tiny");
    project.write("harness.yaml", &descriptor);
    check_in(&project, &[], &[], "tiny with no key");
}

#[test]
fn an_endpoint_is_asked_for_every_model_with_its_own_key() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    for model in ["openai/gpt-x", "ollama/tiny"] {
        let arguments = ["--base-url", &server.url, "--model", model];
        let output = ask(&Project::plain(), &server, &[OPENAI, OPENROUTER, OWN], &arguments);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    let models: Vec<_> = server.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(
        (models, server.keys()),
        (vec!["openai/gpt-x".into(), "tiny".into()], vec![OWN.1.to_owned(); 2])
    );
}

#[test]
fn anthropic_is_asked_in_its_own_protocol_and_with_its_own_names() {
    let server = Server::start([Reply::status(400, r#"{"type":"error","error":{"message":"no"}}"#)]);
    let key = ("ANTHROPIC_API_KEY", "key-of-anthropic");
    // The address as Anthropic's own programs take it.
    let address = ("ANTHROPIC_BASE_URL", server.url.trim_end_matches("/v1"));
    let arguments = ["--model", "anthropic/claude-sonnet-4.5"];
    let output = ask(&Project::plain(), &server, &[key, OPENROUTER, address], &arguments);
    let asked = server.requests();
    assert_eq!((output.code, asked.len(), server.keys()), (Some(1), 1, vec![key.1.to_owned()]), "{output:?}");
    assert_eq!(asked[0]["model"], "claude-sonnet-4-5");
    assert!(asked[0]["max_tokens"].is_number(), "{}", asked[0]);
    check(&[OPENROUTER], &["--model", "anthropic/claude-x"], "anthropic/claude-x with key-of-openrouter");
}

/// Writes a file that only its owner may read.
pub(crate) fn write_keys(project: &Project, name: &str, text: &str) {
    let path = project.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn keys_come_from_the_named_file_then_the_environment_then_the_usual_file() {
    let project = Project::plain();
    write_keys(&project, "config/harness/keys.yaml", "openai: usual\nopenrouter: usual-router\n");
    write_keys(&project, "named.yaml", "openai: named\n");
    let config = project.path().join("config");
    let config = ("XDG_CONFIG_HOME", config.to_str().unwrap());
    let model = ["--model", "openai/gpt-x"];
    let named = ["--model", "openai/gpt-x", "--keys", "named.yaml"];
    check_in(&project, &[config], &model, "gpt-x with usual");
    check_in(&project, &[config, OPENAI], &model, "gpt-x with key-of-openai");
    check_in(&project, &[config, OPENAI], &named, "gpt-x with named");
    check_in(&project, &[config], &["--model", "a/b"], "a/b with usual-router");
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let project = Project::plain();
    write_keys(&project, "keys.yaml", "openai: sk-secret\n");
    fs::set_permissions(project.path().join("keys.yaml"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = project.harness(&["run", "harness.yaml", "hello", "--keys", "keys.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: invalid key file keys.yaml: other users can access it (mode 644)
      hint: restrict access: chmod 600 keys.yaml
    ");
}

#[test]
fn what_is_missing_is_named() {
    let project = Project::plain();
    let mut told = String::new();
    for model in ["openai/gpt-x", "openrouter/auto", "local/tiny"] {
        let output = project.harness(&["run", "harness.yaml", "hello", "--model", model]);
        told += &project.told(&output);
    }
    let output = project.harness(&["run", "harness.yaml", "hello", "--keys", "missing.yaml"]);
    insta::assert_snapshot!(told + &project.told(&output), @r"
    exit 2
    ---
    error: no API key for model `openai/gpt-x`: neither OPENAI_API_KEY nor OPENROUTER_API_KEY is set
      hint: set OPENAI_API_KEY or OPENROUTER_API_KEY, or use `--keys FILE`, `--model ollama/NAME`, `--base-url URL`, or `--model demo` for the demo model
    exit 2
    ---
    error: no API key for model `openrouter/auto`: OPENROUTER_API_KEY is not set
      hint: set OPENROUTER_API_KEY, or use `--keys FILE`, `--model ollama/NAME`, `--base-url URL`, or `--model demo` for the demo model
    exit 2
    ---
    error: no base URL for model `local/tiny`
      hint: pass `--base-url URL` or set `HARNESS_LOCAL_BASE_URL`
    exit 2
    ---
    error: invalid key file missing.yaml: cannot read it: No such file or directory (os error 2)
      hint: check the path and its permissions
    ");
}
