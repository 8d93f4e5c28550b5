//! Sub-agents, modes and surroundings, put together by the builder.

use std::sync::Arc;

use harness::core::Json;
use harness::core::decide::{DynGate, Guarded};
use harness::core::event::{Event, EventKind, Fold};
use harness::core::message::Usage;
use harness::core::outcome::StopMode;
use harness::core::tool::{Tool, ToolError};
use harness::host::Params;
use harness::memory::compact::{CompactionPolicy, ContextCompactor};
use harness::memory::layer::{FnLayer, LayerDef, LayerSetup, Pipeline, Recalled, Spawned, Update, developer};
use harness::prelude::*;
use harness::system::SystemClock;
use harness::tools::{Keep, Modes, Subagent};
use parking_lot::Mutex;

use crate::support::{Script, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn pay() -> impl Tool {
    tool_fn("pay", "Pays", |_: Nothing, _| async { "paid" })
}

fn scout() -> Subagent {
    Subagent::new("scout", "looks around", "You look around.")
}

const TASK: &str = r#"{"description":"Look.","subagent_type":"scout"}"#;

fn used(mut answer: AssistantMessage) -> AssistantMessage {
    answer.usage = Some(Arc::new(Usage::tokens(10, 1)));
    answer
}

/// Denies paying, whoever pays.
fn no_paying() -> Guarded<dyn DynGate> {
    gate::func("no-paying", |ask, _| match ask.call.name.as_str() {
        "pay" => GateVerdict::Deny { message: "no money".into() },
        _ => GateVerdict::Allow,
    })
}

#[derive(serde::Deserialize)]
struct Settings {
    region: String,
}

/// The region of the host parameters, which the model does not see.
fn place() -> impl Tool {
    tool_fn("place", "Says where", |_: Nothing, cx| async move {
        let settings: Settings =
            cx.params.to().map_err(|error| ToolError::new("params", error.to_string()))?;
        Ok::<_, ToolError>(settings.region)
    })
}

#[tokio::test]
async fn tools_read_the_params_of_the_host_and_so_do_those_of_subagents() {
    let steps = || {
        Script::new([
            call("c1", "place", "{}"),
            call("c2", "task", TASK),
            call("s1", "place", "{}"),
            AssistantMessage::text("Looked."),
            AssistantMessage::text("Done."),
        ])
    };
    let params = || Params::new(Json::parse(r#"{"region":"eu"}"#).unwrap());
    let last = |seen: String| seen.rsplit(" | ").next().unwrap().to_owned();
    let asked = |script: &Script| script.seen().into_iter().map(last).collect::<Vec<_>>();
    let expected = ["user Where?", "toolResult eu", "user Look.", "toolResult eu"];

    let script = steps();
    let builder = Harness::new(script.clone()).tool(place()).subagents([scout()]);
    builder.params(params()).build().unwrap().prompt("Where?").await.unwrap();
    assert_eq!(asked(&script)[..4], expected);

    let script = steps();
    let builder = Harness::new(script.clone()).tool(place()).subagents([scout()]);
    let runtime = builder.params(params()).build_runtime().unwrap();
    runtime.thread("t").prompt("Where?").await.unwrap();
    assert_eq!(asked(&script)[..4], expected);
    assert_eq!(runtime.params().json().text(), r#"{"region":"eu"}"#);

    let script = Script::new([call("c1", "place", "{}"), AssistantMessage::text("Nowhere.")]);
    Harness::new(script.clone()).tool(place()).build().unwrap().prompt("Where?").await.unwrap();
    assert_eq!(asked(&script), ["user Where?", "toolResult missing field `region` at line 1 column 2"]);
}

/// Names of tools that were denied.
#[derive(Default)]
struct Denied(Vec<String>);

impl Fold for Denied {
    fn apply(&mut self, event: &Event) {
        if let EventKind::Decided { reason: Some(reason), .. } = &event.kind {
            self.0.push(format!("{} {reason}", event.origin.actor()));
        }
    }
}

#[tokio::test]
async fn a_subagent_has_the_tools_and_the_gates_of_its_caller() {
    let steps = [
        used(call("c1", "task", TASK)),
        used(call("s1", "pay", "{}")),
        used(AssistantMessage::text("I could not pay.")),
        used(AssistantMessage::text("It was not possible.")),
    ];
    let (script, denied) = (Script::new(steps), Arc::new(Mutex::new(Denied::default())));
    let builder = Harness::new(script.clone()).instructions("You lead.").tool(pay()).gate(no_paying());
    let harness = builder.subagents([scout()]).watch_subagents(Arc::clone(&denied)).build().unwrap();
    let report = harness.prompt("Pay.").await.unwrap();
    assert_eq!(report.answer(), "It was not possible.");
    assert_eq!(denied.lock().0, ["sub_agent no money"]);
    assert_eq!(report.end.usage.input_tokens, Some(40), "the scout's, too");
    let seen = script.seen();
    let second = seen.get(1).map(String::as_str);
    assert_eq!(second, Some("scout: You look around. | user Look."));
}

#[tokio::test]
async fn a_subagent_has_the_checks_of_its_caller_but_for_those_of_the_end() {
    let judged = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str, points| {
        let judged = Arc::clone(&judged);
        check::func(name, points, move |_, cx| {
            judged.lock().push(format!("{name} {}", cx.origin.actor()));
            CheckVerdict::Accept
        })
    };
    let script = Script::new([
        call("c1", "task", TASK),
        AssistantMessage::text("a ship"),
        AssistantMessage::text("There is a ship."),
    ]);
    let builder =
        Harness::new(script).check(noting("answer", Points::ANSWER)).check(noting("end", Points::END));
    let harness = builder.subagents([scout()]).build().unwrap();
    assert_eq!(harness.prompt("Look.").await.unwrap().answer(), "There is a ship.");
    assert_eq!(*judged.lock(), ["answer sub_agent", "answer agent", "end agent"]);
}

#[tokio::test]
async fn agents_work_in_the_background_of_a_run() {
    let start = r#"{"agent":"scout","description":"Look."}"#;
    let script = Parallel::default();
    let harness = Harness::new(script.clone()).background_agents([scout()], Keep::Run).build().unwrap();
    script.lead([
        call("c1", "background_agents_start_task", start),
        call("c2", "background_agents_wait_for_first_completion", "{}"),
        AssistantMessage::text("Seen."),
    ]);
    let report = harness.prompt("Look.").await.unwrap();
    assert_eq!(report.answer(), "Seen.");
    let told: Vec<String> = report.transcript.iter().map(|message| message.joined_text()).collect();
    assert!(told.iter().any(|text| text.contains(r#""status":"completed","answer":"a ship""#)), "{told:?}");
}

/// Says what it is told to as the leading agent; every other one sees a ship.
#[derive(Clone, Default)]
struct Parallel(Arc<Mutex<Vec<AssistantMessage>>>);

impl Parallel {
    fn lead(&self, steps: impl IntoIterator<Item = AssistantMessage>) {
        let mut steps: Vec<_> = steps.into_iter().collect();
        steps.reverse();
        *self.0.lock() = steps;
    }
}

impl Model for Parallel {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        match request.prepared.agent.as_str() {
            "scout" => Ok(AssistantMessage::text("a ship")),
            _ => Ok(self.0.lock().pop().unwrap()),
        }
    }
}

#[tokio::test]
async fn a_plan_changes_nothing_and_is_interactive() {
    let steps = [
        call("c1", "pay", "{}"),
        AssistantMessage::text("I would pay."),
        call("c2", "pay", "{}"),
        AssistantMessage::text("Paid."),
    ];
    let (script, modes) = (Script::new(steps), Modes::plan_and_execute());
    let builder = Harness::new(script.clone()).tool(pay()).modes(modes.clone());
    let harness = builder.spec(|run| run.mode = StopMode::StrictAutomation).build().unwrap();
    let said = |report: &harness::runtime::Report| -> Vec<String> {
        report.transcript.iter().map(|message| message.joined_text()).collect()
    };
    let planned = said(&harness.prompt("Pay.").await.unwrap());
    assert!(planned.iter().any(|text| text.starts_with("The mode is `plan` from now on.")), "{planned:?}");
    assert!(planned.iter().any(|text| text.starts_with("`pay` may change something")), "{planned:?}");
    modes.of(harness.thread().id()).set("execute").unwrap();
    let done = said(&harness.prompt("Go on.").await.unwrap());
    assert!(done.iter().any(|text| text == "paid"), "{done:?}");
    assert!(done.iter().any(|text| text.starts_with("The mode is `execute` from now on.")), "{done:?}");
}

#[tokio::test]
async fn each_thread_of_a_runtime_has_its_mode() {
    let steps = [
        call("c1", "mode_set", r#"{"mode":"execute"}"#),
        call("c2", "pay", "{}"),
        AssistantMessage::text("Paid."),
        call("c3", "pay", "{}"),
        AssistantMessage::text("I would pay."),
    ];
    let modes = Modes::plan_and_execute().model_may_set();
    let runtime = Harness::new(Script::new(steps)).tool(pay()).modes(modes).build_runtime().unwrap();
    let says_paid = async |thread: &str| {
        let report = runtime.thread(thread).prompt("Pay.").await.unwrap();
        report.transcript.iter().any(|message| message.joined_text() == "paid")
    };
    assert!(says_paid("first").await);
    assert!(!says_paid("second").await);
}

#[tokio::test]
async fn agents_are_told_once_per_run_where_they_work() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let put = folder.path().join("new.md");
    let write = tool_fn("write", "Writes", move |_: Nothing, _| {
        let written = std::fs::write(&put, "x").map_err(|error| error.to_string());
        async move { written.map(|()| "written") }
    });
    let steps = [call("c1", "write", "{}"), AssistantMessage::text("done"), AssistantMessage::text("again")];
    let script = Script::new(steps);
    let builder = Harness::new(script.clone()).instructions("Be brief.").tool(write);
    let harness = builder.surroundings(folder.path()).build().unwrap();
    harness.prompt("Write.").await.unwrap();
    harness.prompt("Again.").await.unwrap();
    let told: Vec<String> = script.seen().iter().map(|seen| listing(seen)).collect();
    assert_eq!(told, ["- src/", "- src/", "- new.md\n- src/"]);
}

/// What a request says is in the folder.
fn listing(seen: &str) -> String {
    let told = seen.strip_prefix("main: Be brief.\n\n# Environment\n").unwrap();
    let (_, listed) = told.split_once("In the directory:\n").unwrap();
    listed.split(" | ").next().unwrap().to_owned()
}

#[tokio::test]
async fn a_subagent_has_the_guardrails_of_its_caller_and_none_of_its_checks_of_the_end() {
    let steps = [
        call("c1", "task", TASK),
        AssistantMessage::text("The key is hunter2."),
        AssistantMessage::text("It did not say."),
    ];
    let points = Points::ANSWER.and(Points::END);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let ends = check::func("no-secrets", points, move |subject, cx| {
        let text = subject.text();
        let point = if matches!(subject, Subject::End { .. }) { "end" } else { "answer" };
        heard.lock().push(format!("{} {point}", cx.origin.actor()));
        if text.contains("hunter2") { CheckVerdict::refuse("a secret") } else { CheckVerdict::Accept }
    });
    let script = Script::new(steps);
    let harness = Harness::new(script.clone()).check(ends).subagents([scout()]).build().unwrap();
    let report = harness.prompt("Look.").await.unwrap();
    assert_eq!(report.answer(), "It did not say.");
    let result = report.transcript.iter().find(|message| message.as_tool_result().is_some()).unwrap();
    assert!(!result.joined_text().contains("hunter2"), "{}", result.joined_text());
    assert_eq!(*asked.lock(), ["sub_agent answer", "agent answer", "agent end"]);
}

#[tokio::test]
async fn a_subagent_has_the_compactor_of_its_caller_with_a_state_of_its_own() {
    let paid = ["s1", "s2"].map(|id| call(id, "pay", "{}"));
    let steps = [call("c0", "pay", "{}"), call("c1", "task", TASK)].into_iter().chain(paid);
    let script = Script::new(steps.chain(["Paid.", "Done."].map(AssistantMessage::text)));
    let compactor = ContextCompactor::new(CompactionPolicy::selective(1));
    let builder = Harness::new(script.clone()).tool(pay()).compactor(compactor).subagents([scout()]);
    assert_eq!(builder.build().unwrap().prompt("Pay.").await.unwrap().answer(), "Done.");
    let results: Vec<usize> = script.seen().iter().map(|seen| seen.matches("| toolResult").count()).collect();
    assert_eq!(results, [0, 1, 0, 1, 1, 1], "{:?}", script.seen());
}

/// Shows the answers that it has seen; those of a child come back.
fn answers() -> FnLayer {
    FnLayer::new(LayerDef::new("answers", 120, []))
        .on_init(|_, _| async { Update::set(&Vec::<String>::new()) })
        .on_spawn(|_, cx| async move {
            Ok(cx.state.map(|state| Spawned::state(state).with_items(vec![developer("You are a child.")])))
        })
        .on_recall(|_, cx| async move {
            Ok(Recalled::text(format!("So far: {}.", cx.state_as::<Vec<String>>()?.join(", "))))
        })
        .on_store(|ask, cx| async move {
            let mut said: Vec<String> = cx.state_as()?;
            said.extend(Some(ask.answer.joined_text()).filter(|text| !text.is_empty()));
            Update::set(&said)
        })
        .on_child_return(|ask, _| async move { Ok(Update::Set(ask.child_state)) })
}

#[tokio::test]
async fn the_memory_of_a_subagent_is_a_child_of_its_callers() {
    let steps =
        [call("c1", "task", TASK), AssistantMessage::text("a ship"), AssistantMessage::text("One ship.")];
    let script = Script::new(steps);
    let layers = Pipeline::build(LayerSetup::new().with(answers()), Arc::new(SystemClock::new())).unwrap();
    let harness = Harness::new(script.clone()).memory(layers.clone()).subagents([scout()]).build().unwrap();
    assert_eq!(harness.prompt("Look.").await.unwrap().answer(), "One ship.");
    let seen = script.seen();
    let shows = |at: usize, text: &str| seen.get(at).is_some_and(|seen: &String| seen.contains(text));
    assert!(shows(1, "You are a child.") && shows(1, "So far: ."), "{seen:?}");
    assert!(shows(2, "So far: a ship."), "the caller's layers learn from it: {seen:?}");
}
