//! Records of runs through the facade.

use std::sync::Arc;

use harness::BoundGraph;
use harness::core::Json;
use harness::core::message::ToolCall;
use harness::descriptor::load_text;
use harness::prelude::*;
use harness::record::{FileSink, RecordError, RecordFile, Recording, RunRecord};
use harness::session::MemorySession;

use crate::support::Script;

const DESK: &str = "
runtime: { entry_agent: desk }
context:
  fields:
    user.mail: { default: ada@example.com, redact: true }
    user.tier: { default: gold }
agents: { desk: { model: small, instructions: Be brief. } }
";

fn builder(answers: &[&str]) -> harness::Builder {
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    Harness::new(Script::new(answers.iter().map(|text| AssistantMessage::text(*text)))).graph(graph)
}

#[tokio::test]
async fn every_run_gives_a_record_without_what_the_descriptor_marks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let recording = Recording::new().sink(FileSink::new(&path)).metadata(Json::string("mine"));
    let harness = builder(&["I write to ada@example.com.", "Bye."])
        .session(MemorySession::new())
        .record(recording)
        .build()
        .unwrap();
    let first = harness.prompt("I am ada@example.com").await.unwrap().record.unwrap();
    assert_eq!(RunRecord::read(&path).unwrap(), *first);
    assert_eq!(
        first.context_snapshot.as_ref().map(Json::text),
        Some(r#"{"user":{"mail":"[redacted]","tier":"gold"}}"#)
    );
    assert_eq!(first.question, "I am [redacted]");
    assert_eq!(first.response.as_deref(), Some("I write to [redacted]."));
    assert!(first.candidate.descriptor_hash.as_ref().is_some_and(|hash| hash.starts_with("sha256:")));
    assert!(first.candidate.package_version.as_ref().is_some_and(|version| version.starts_with("harness ")));
    assert!(first.limits.as_ref().is_some_and(|limits| limits.text().contains("\"toolCalls\":128")));

    let second = harness.prompt("Thanks").await.unwrap().record.unwrap();
    assert_eq!((second.earlier_item_count, second.question.as_str()), (2, "Thanks"));
    assert_ne!(second.run_id, first.run_id);
    assert_eq!(second.candidate.digest, first.candidate.digest);
}

/// Keeps nothing.
struct Full;

impl harness::record::RecordSink for Full {
    async fn write(&self, _: Arc<RunRecord>) -> Result<(), RecordError> {
        let (action, source) = ("write", std::io::Error::other("it is full"));
        Err(RecordError::Io { file: RecordFile::Record, action, path: "store".into(), source })
    }
}

#[tokio::test]
async fn a_sink_that_fails_changes_nothing_and_is_told() {
    let harness = builder(&["Hi."]).record(Recording::new().sink(Full)).build().unwrap();
    let report = harness.prompt("Hello").await.unwrap();
    assert_eq!(report.answer(), "Hi.");
    assert!(report.record.is_some());
    assert!(report.record_failed.unwrap().starts_with("cannot write run record `store`: it is full"));
}

/// Runs a desk that delegates to a scout `calls` times in one answer, and gives the record.
async fn delegated(calls: usize) -> Arc<RunRecord> {
    let arguments = r#"{"subagent_type":"scout","description":"Write to ada@example.com."}"#;
    let call = |at: usize| ToolCall::new(format!("c{at}"), "task", Json::parse(arguments).unwrap());
    let mut answers = vec![AssistantMessage::calls((1..=calls).map(call))];
    answers.extend((0..calls).map(|_| AssistantMessage::text("I wrote to ada@example.com.")));
    answers.extend(["Done.", "Done again."].map(AssistantMessage::text));
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let scout = harness::tools::Subagent::new("scout", "writes", "You write letters.");
    let builder = Harness::new(Script::new(answers)).graph(graph).subagents([scout]);
    let harness = builder.record(Recording::new()).build().unwrap();
    let first = harness.prompt("Write to Ada.").await.unwrap().record.unwrap();
    let second = harness.prompt("Again.").await.unwrap().record.unwrap();
    assert!(second.sub_agents.is_empty(), "sub-agents are in the record of their caller alone");
    first
}

#[tokio::test]
async fn sub_agents_are_in_the_record_of_their_caller_and_as_redacted() {
    let record = delegated(2).await;
    let calls: Vec<&str> = record.sub_agents.iter().map(|run| run.call_id.as_str()).collect();
    assert_eq!((calls, record.omitted_sub_agents), (vec!["c1", "c2"], 0));
    for run in &record.sub_agents {
        let run = &run.record;
        assert_eq!((run.agent_name.as_str(), run.question.as_str()), ("scout", "Write to [redacted]."));
        assert_eq!(run.response.as_deref(), Some("I wrote to [redacted]."));
        assert_eq!((run.model_calls.len(), run.context_snapshot.is_some()), (1, false));
        assert_eq!(run.prompts.as_ref().unwrap().instructions, ["You write letters."]);
    }
    let text = record.to_json().unwrap();
    assert!(!text.text().contains("ada@example.com"), "{}", text.text());
    assert_eq!(RunRecord::from_text("r.json", text.text()).unwrap(), *record);
}
