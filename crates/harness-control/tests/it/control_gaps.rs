//! The control plane in whole runs: evidence, compaction, guidance, stop modes.

use std::sync::Arc;

use harness_control::contract::{PredicateKind, SchemaSource, TaskContract, TextField};
use harness_control::{ControlEvent, ControlSpec, FeedbackKind, SignalSpec, StandardFacts};
use harness_core::Fault;
use harness_core::message::Message;
use harness_core::port::{CompactAsk, Compaction, CompactionNote, Compactor};
use harness_core::tool::ToolOutcome;
use harness_core::transcript::{Plan, Span};
use harness_host::{
    DynWorkspace, EntryKind, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFile, WorkspaceHit,
};

use crate::controlled::{Played, Scene, calls, done, impatient, says};

fn contract(predicate: PredicateKind) -> ControlSpec {
    impatient().with_contract(TaskContract::new("c", "Publish").require("R1", "it is there", predicate))
}

fn result_of(tool: &str) -> PredicateKind {
    PredicateKind::ToolResultSuccess { tool_name: tool.to_owned(), args_match: None, min_count: 1 }
}

/// One file, `/report.md`.
struct OneFile;

impl Workspace for OneFile {
    async fn list(&self, _: &str, _: u32, _: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        Ok(vec![WorkspaceEntry::new("/report.md", EntryKind::File)])
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        Ok((path == "report.md").then(|| WorkspaceFile::text("/report.md", "v2")))
    }

    async fn search(&self, _: &str, _: Option<&str>, _: u32) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        Ok(Vec::new())
    }
}

fn facts() -> StandardFacts {
    StandardFacts::default()
        .with_workspace(Arc::new(OneFile) as Arc<dyn DynWorkspace>)
        .with_check("tests", Arc::new(|_| Box::pin(async { Ok("all passed".to_owned()) })))
        .with_check("lint", Arc::new(|_| Box::pin(async { Err("two warnings".to_owned()) })))
}

/// Publishes, says so, and signals; with the contract of one predicate.
fn published(predicate: PredicateKind) -> Played {
    let replies = [calls(&[("publish", r#"{"to":"feed"}"#)]), says("Published v2.4 to the feed."), done()];
    let mut scene = Scene::new(contract(predicate), replies).turns(2);
    scene.facts = Some(facts());
    scene.with_tool("publish", [ToolOutcome::text(r#"{"version":2}"#)]).play()
}

/// Whether a predicate is met by a real run, and in which event the proof lies.
#[track_caller]
fn check(predicate: PredicateKind, expected: &str) {
    let played = published(predicate);
    let report = &played.report();
    let coverage = report.coverage.as_ref().expect("a contract");
    let told = match coverage.coverage["R1"].evidence.last() {
        Some(evidence) => match played.numbered().get(&evidence.event_ref) {
            Some(event) => event.name().to_owned(),
            None => evidence.event_ref.clone(),
        },
        None => "nothing".to_owned(),
    };
    assert_eq!(format!("{} by {told}", coverage.status("R1").as_str()), expected);
    assert_eq!(report.decision.contract_verified, Some(expected.starts_with("met")));
    assert_eq!(played.end.outcome().as_str() == "completed", expected.starts_with("met"));
}

#[test]
fn every_predicate_is_judged_on_the_evidence_of_a_real_run() {
    let text = |pattern: &str, field| PredicateKind::ContainsText { pattern: pattern.to_owned(), field };
    check(PredicateKind::AlwaysTrue, "met by model_judgment");
    check(result_of("publish"), "met by message_appended");
    check(result_of("retract"), "unmet by nothing");
    check(text(r"v\d+\.\d+", TextField::Response), "met by message_appended");
    check(text("v9", TextField::AnyResponse), "unmet by nothing");
    check(text("version", TextField::Transcript), "met by message_appended");
    let schema = |required: &str, source| PredicateKind::JsonSchemaValid {
        schema: serde_json::json!({"type": "object", "required": [required]}),
        source,
    };
    check(schema("version", SchemaSource::Tool("publish".to_owned())), "met by message_appended");
    check(schema("date", SchemaSource::Tool("publish".to_owned())), "unmet by nothing");
    check(PredicateKind::FileExists { path: "report.md".to_owned() }, "met by file_check");
    check(PredicateKind::FileExists { path: "other.md".to_owned() }, "unmet by nothing");
    let custom = |name: &str| PredicateKind::Custom { check: Some(name.to_owned()) };
    check(custom("tests"), "met by custom_check");
    check(custom("lint"), "unmet by nothing");
    check(custom("spelling"), "unmet by nothing");
}

#[test]
fn what_is_missing_is_told_once_and_stays_in_the_transcript() {
    let replies = [done(), calls(&[("publish", "{}")]), says("now it is"), done()];
    let scene = Scene::new(contract(result_of("publish")), replies);
    let played = scene.with_tool("publish", [ToolOutcome::text("ok")]).play();
    assert_eq!(played.decisions(), ["contract_not_satisfied", "agent_working", "agent_done"]);
    assert_eq!(played.told("R1: it is there (no result of `publish` yet)"), [0, 1, 1, 1]);
    let told = |event: &ControlEvent| matches!(event, ControlEvent::StopDecided { decision } if decision.feedback.is_some());
    assert_eq!(played.control_events().iter().filter(|event| told(event)).count(), 1);
}

#[test]
fn a_later_failure_of_the_same_tool_takes_the_proof_away() {
    let publish = || calls(&[("publish", "{}")]);
    let scene = Scene::new(contract(result_of("publish")), [publish(), publish(), done(), done()]).turns(2);
    let played =
        scene.with_tool("publish", [ToolOutcome::text("ok"), ToolOutcome::error("no", "rolled back")]).play();
    assert_eq!(played.decisions(), ["contract_not_satisfied", "max_turns"]);
    let report = &played.report();
    assert_eq!(report.unmet.as_ref().map(|gaps| gaps.unmet_requirements.len()), Some(1));
}

/// Shows a summary in place of all but the last message, and tells so, once there are four.
struct Summarizes;

impl Compactor for Summarizes {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let messages = ask.view.len();
        if messages < 4 {
            return Ok(Compaction::unchanged());
        }
        let summary = Span::Made(Arc::from([Arc::new(Message::user("a summary"))]));
        let plan = Plan { spans: [summary, Span::Kept(messages - 1..usize::MAX)].into() };
        let mut done = Compaction::planned(plan);
        done.note = Some(CompactionNote::default());
        Ok(done)
    }
}

#[test]
fn only_the_compactor_changes_what_is_sent_and_every_start_has_its_end() {
    let mut control = ControlSpec::default().with_signal(SignalSpec::default().patience(9, 0));
    control.guidance.environment = Some("Folder /project.".to_owned());
    let mut scene = Scene::new(control, [says("a"), says("b"), done()]);
    scene.compactor = Some(Arc::new(Summarizes));
    let played = scene.play();
    let lines = played.events.lines();
    let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!((count("compaction_started"), count("compaction_completed")), (1, 1));
    let mut sent = Vec::new();
    played.requests[2].view.for_each(|message| sent.push(message.joined_text()));
    assert_eq!(sent[0], "a summary");
    assert!(sent.last().is_some_and(|text| text.contains("Folder /project.")), "{sent:?}");
    assert_eq!(played.told("a summary"), [0, 0, 1], "one owner: it is there once");
    assert_eq!(played.log[0].joined_text(), "go", "the transcript keeps everything");
}

#[test]
fn guidance_is_told_once_in_a_request_and_stored_nowhere() {
    let mut control = impatient();
    control.guidance.environment = Some("Folder /project, Linux.".to_owned());
    let turn = || [calls(&[("look", "{}")]), says("looking")];
    let replies = turn().into_iter().chain(turn()).chain(turn()).chain([done()]);
    let played = Scene::new(control, replies).with_tool("look", [ToolOutcome::text("1")]).turns(4).play();
    assert!(played.told("Folder /project").iter().all(|count| *count == 1), "once in each request");
    assert!(played.told("<harness-guidance>").iter().all(|count| *count == 1));
    assert_eq!(
        played.told("Few turns are left").iter().sum::<usize>(),
        1,
        "an instruction of the moment once"
    );
    assert!(!played.log.iter().any(|message| message.joined_text().contains("harness-guidance")));
    for event in played.control_events() {
        if let ControlEvent::GuidanceInjected { sections, tokens, .. } = event {
            let mut distinct = sections.clone();
            distinct.dedup();
            assert_eq!(sections, distinct);
            assert!(tokens <= 600, "{tokens}");
        }
    }
}

#[test]
fn nothing_to_tell_leaves_a_request_as_it_is() {
    let played = Scene::new(impatient(), [done()]).play();
    assert_eq!(played.told("harness-guidance"), [0]);
    assert_eq!(played.requests[0].view.len(), 1);
}

#[test]
fn guidance_keeps_its_bound_and_can_be_switched_off() {
    let mut control = impatient();
    control.guidance.environment = Some("a long line of words\n".repeat(500));
    control.guidance.tokens = 50;
    let text_of = |control: ControlSpec| {
        let played = Scene::new(control, [done()]).play();
        played.requests[0].view.last().map(|message| message.joined_text()).unwrap_or_default()
    };
    let text = text_of(control.clone());
    assert!(text.len() <= 200 && text.contains("a long line"), "{text}");
    control.guidance.off = harness_control::GuidanceSection::ALL.iter().copied().collect();
    assert_eq!(text_of(control), "go");
}

#[test]
fn strict_automation_needs_every_gate_in_the_same_decision() {
    let unmet = contract(result_of("publish"));
    let played = Scene::new(unmet, (0..5).map(|_| done())).strict().turns(5).play();
    assert_eq!(played.decisions().join(" "), "contract_not_satisfied ".repeat(4) + "max_turns");
    assert_eq!(
        played.ended(),
        "max_turns_reached exhausted signal:accepted contract:refused acceptability:not_asked"
    );
    let report = &played.report();
    assert_eq!(report.decision.first_unmet.map(FeedbackKind::as_str), Some("contract_gap"));
}

#[test]
fn the_models_own_report_must_be_good_enough() {
    let signal = |arguments: &str| calls(&[("work_complete", arguments)]);
    let replies = [
        signal(r#"{"summary":"s","confidence":0.2}"#),
        signal(r#"{"summary":"s","open_questions":["which year?"]}"#),
        signal(r#"{"summary":"s","confidence":0.9}"#),
    ];
    let played = Scene::new(contract(PredicateKind::AlwaysTrue), replies.clone()).strict().play();
    assert_eq!(played.decisions(), ["acceptability_not_met", "acceptability_not_met", "agent_done"]);
    let interactive = Scene::new(contract(PredicateKind::AlwaysTrue), replies).play();
    assert_eq!(interactive.decisions(), ["agent_done"], "a person sees the report");
}

#[test]
fn a_signal_that_says_nothing_is_none_where_nothing_else_is_required() {
    let silent = || calls(&[("work_complete", r#"{"summary":" "}"#)]);
    let played = Scene::new(impatient(), [silent(), done()]).strict().play();
    assert_eq!(played.decisions(), ["work_complete_not_called", "agent_done"]);
}

#[test]
fn stop_modes_interactive_says_when_it_let_the_signal_go() {
    let control = ControlSpec::default().with_signal(SignalSpec::default().patience(0, 0));
    let played = Scene::new(control, [says("that is all")]).play();
    assert_eq!(played.ended(), "completion_waived done signal:waived");
    assert!(played.report().decision.waived);
}
