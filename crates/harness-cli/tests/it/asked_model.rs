//! The model that was requested is the model that is recorded.

use serde_json::Value;

use crate::support::{Project, Reply, Server};

fn recorded(project: &Project, server: &Server, more: &[&str]) -> (String, Value) {
    let output = project.ask(&server.url, &[&["--json", "--run-record", "run.json"], more].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let record = serde_json::from_str(&project.read("run.json")).unwrap();
    std::fs::remove_file(project.path().join("run.json")).unwrap();
    (output.stdout, record)
}

#[test]
fn fault_21_events_and_records_name_the_model_that_was_requested() {
    let server = Server::start((0..3).map(|_| Reply::text("ok")));
    let project = Project::plain();
    let (_, own) = recorded(&project, &server, &[]);
    let (told, one) = recorded(&project, &server, &["--model", "acme/one"]);
    let (_, two) = recorded(&project, &server, &["--model", "acme/two"]);
    let started = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asked: Vec<_> = started.filter(|event| event["type"] == "model_step_started").collect();
    assert!(!asked.is_empty() && asked.iter().all(|event| event["model"] == "acme/one"), "{asked:?}");
    for (record, model) in [(&one, "acme/one"), (&two, "acme/two")] {
        assert_eq!(record["candidate"]["model"], model, "{record}");
        let text = record["modelCalls"].to_string();
        assert!(text.contains(model), "{text}");
    }
    let digests = [&own, &one, &two].map(|record| record["candidate"]["digest"].as_str().unwrap().to_owned());
    assert!(digests[0] != digests[1] && digests[1] != digests[2], "{digests:?}");
    assert_eq!(own["candidate"]["registryVersion"], Value::Null, "the registry file names no version");
}

#[test]
fn fault_21_records_carry_the_version_of_the_registry() {
    let server = Server::start([Reply::text("ok")]);
    let project = Project::plain();
    let registry = project.read("registry.yaml");
    project.write("registry.yaml", &format!("registry_version: tools-7\n{registry}"));
    let (_, record) = recorded(&project, &server, &[]);
    assert_eq!(record["candidate"]["registryVersion"], "tools-7", "{}", record["candidate"]);
}
