//! What a client gives a run beside its message: settings of the agents, a history, or no message at all.

use std::sync::Arc;

use harness::BoundGraph;
use harness::core::machine::{CallDecision, Resume};
use harness::core::message::{ApprovalRequest, AssistantMessage, Message};
use harness::core::{Json, Time};
use harness::descriptor::load_text;
use harness::prelude::*;
use harness::runtime::DeliveryMode;
use harness::testing::ScriptedModel;
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{
    AgentSettings, ResumeAsk, RunOptions, SimEngine, ThreadAsk, ThreadReply, ThreadState, ThreadStatus, fold,
};

const DESK: &str = r#"
runtime: { entry_agent: desk }
context:
  fields: { customer.name: { default: nobody } }
  references: { customer.name: true }
agents:
  desk: { model: small, instructions: "You serve {{context.customer.name}}." }
"#;

const SCHEMA: &str = r#"{"type":"object","properties":{"euros":{"type":"number"}},"required":["euros"]}"#;

/// What is left of a thread that took some requests.
struct Played {
    /// The instructions of each request to the model, and its messages.
    requests: Vec<(String, Vec<String>)>,
    /// The stop reason of the last run.
    end: String,
    /// The transcript.
    said: Vec<String>,
    points: u64,
}

/// Plays requests on an engine that crashes at these points.
fn play(crash_at: &[u64], asks: Vec<ThreadAsk>, answers: &[&str]) -> Played {
    let model = ScriptedModel::new(answers.iter().map(|text| AssistantMessage::text(*text))).repeatable();
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let faults = SimFaults { crash_at: crash_at.iter().copied().collect(), ..SimFaults::default() };
    let engine = SimEngine::new(faults);
    let runtime =
        Harness::new(model.clone()).graph(graph).clock(Arc::new(engine.clock())).build_runtime().unwrap();
    for (n, ask) in asks.into_iter().enumerate() {
        engine.client().send(n.to_string(), Time(0), &"t1".into(), ask);
    }
    let report = engine.run(&Arc::new(runtime));
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]));
    let texts =
        |messages: &mut dyn Iterator<Item = &Arc<Message>>| messages.map(|m| m.joined_text()).collect();
    let seen = |request: &harness::core::port::ModelRequest| {
        let mut said = Vec::new();
        request.view.for_each(|message| said.push(message.joined_text()));
        (request.prepared.instructions.to_string(), said)
    };
    let end = engine.thread(&"t1".into()).unwrap().last().unwrap().clone().unwrap();
    Played {
        requests: model.requests().iter().map(seen).collect(),
        end: end.reason().to_string(),
        said: texts(&mut fold(&engine.log(&"t1".into())).messages()),
        points: report.points,
    }
}

fn prompt(agents: AgentSettings) -> ThreadAsk {
    ThreadAsk::Deliver {
        entry: "m1".into(),
        message: Arc::new(Message::user("Hi")),
        mode: DeliveryMode::NextTurn,
        wakes: true,
        options: RunOptions { agents, ..RunOptions::default() },
    }
}

fn customer(name: &str) -> AgentSettings {
    let context = Some(Json::parse(&format!(r#"{{"customer":{{"name":"{name}"}}}}"#)).unwrap());
    AgentSettings { context, ..AgentSettings::default() }
}

#[test]
fn context_of_a_message_or_its_thread_is_in_the_instructions() {
    let configured = || ThreadAsk::Configure(RunOptions { agents: customer("Ada"), ..RunOptions::default() });
    let check = |asks: Vec<ThreadAsk>, expected: &str| {
        let played = play(&[], asks, &["Hello."]);
        assert_eq!((&*played.requests[0].0, &*played.end), (expected, "answer_finalized"));
    };
    check(vec![prompt(AgentSettings::default())], "You serve nobody.");
    check(vec![prompt(customer("Ada"))], "You serve Ada.");
    check(vec![configured(), prompt(AgentSettings::default())], "You serve Ada.");
    check(vec![configured(), prompt(customer("Bob"))], "You serve Bob.");
}

#[test]
fn context_that_the_descriptor_does_not_have_fails_the_run() {
    let context = Some(Json::parse(r#"{"color":"red"}"#).unwrap());
    let played = play(&[], vec![prompt(AgentSettings { context, output: None })], &["Hello."]);
    assert_eq!((played.requests.len(), &*played.end), (0, "runtime_error"));
}

#[test]
fn an_answer_that_does_not_match_the_schema_is_corrected_whatever_dies() {
    let output = Some(Json::parse(SCHEMA).unwrap());
    let asks = || vec![prompt(AgentSettings { output: output.clone(), ..customer("Ada") })];
    let answers = [r#"{"euros":"many"}"#, r#"{"euros":9}"#];
    let played = play(&[], asks(), &answers);
    assert_eq!((played.requests.len(), &*played.end), (2, "answer_finalized"));
    for point in 1..=played.points {
        let played = play(&[point], asks(), &answers);
        let instructions = played.requests.iter().all(|(seen, _)| seen.contains("You serve Ada."));
        assert!(instructions && played.end == "answer_finalized", "crash at {point}");
    }
}

fn seed(said: &[&str]) -> ThreadAsk {
    let message = |(n, text): (usize, &&str)| {
        Arc::new(if n % 2 == 0 { Message::user(*text) } else { AssistantMessage::text(*text).into() })
    };
    ThreadAsk::Seed { messages: said.iter().enumerate().map(message).collect() }
}

#[test]
fn a_given_history_is_before_the_first_message_once_whatever_dies() {
    let asks = || vec![seed(&["Old", "Older."]), prompt(AgentSettings::default())];
    let played = play(&[], asks(), &["unused", "Hello."]);
    let expected = ["Old", "Older.", "Hi", "Hello."];
    assert_eq!(played.requests[0].1, expected[..3]);
    assert_eq!(played.said, expected);
    for point in 1..=played.points {
        assert_eq!(play(&[point], asks(), &["unused", "Hello."]).said, expected, "crash at {point}");
    }
}

#[test]
fn a_thread_continues_without_a_message() {
    let go_on = || ThreadAsk::Continue { options: RunOptions::default() };
    let played = play(&[], vec![seed(&["Old"]), go_on()], &["Hello."]);
    assert_eq!(played.said, ["Old", "Hello."]);
    assert_eq!(played.end, "answer_finalized");
    for point in 1..=played.points {
        let played = play(&[point], vec![seed(&["Old"]), go_on()], &["Hello."]);
        assert_eq!(played.said, ["Old", "Hello."], "crash at {point}");
    }
}

/// Prompts a thread, and then sends the last requests of: continue, a follow-up, steering, continue. The refusals, the
/// transcript and the points at which the engine can crash.
fn go_on_behind(crash_at: &[u64], first: AgentSettings, most: usize) -> (Vec<String>, Vec<String>, u64) {
    let model = ScriptedModel::new(["a", "b", "c"].map(AssistantMessage::text)).repeatable();
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let engine =
        SimEngine::new(SimFaults { crash_at: crash_at.iter().copied().collect(), ..SimFaults::default() });
    let runtime = Harness::new(model).graph(graph).clock(Arc::new(engine.clock())).build_runtime().unwrap();
    let (client, thread) = (engine.client(), "t1".into());
    let waits = |said: &str, mode| ThreadAsk::Deliver {
        entry: said.into(),
        message: Arc::new(Message::user(said)),
        mode,
        wakes: false,
        options: RunOptions::default(),
    };
    let (report, refused) = engine.play(&Arc::new(runtime), async {
        let go_on = || ThreadAsk::Continue { options: RunOptions::default() };
        let is_idle = |state: &ThreadState| matches!(state.status(), ThreadStatus::Idle);
        let asks =
            [go_on(), waits("f", DeliveryMode::NextTurn), waits("s", DeliveryMode::BetweenRounds), go_on()];
        let mut refused = Vec::new();
        client.ask("first", &thread, prompt(first)).await;
        client.until(&thread, is_idle).await;
        for (at, ask) in asks.into_iter().enumerate().skip(4 - most) {
            if let ThreadReply::Refused(why) = client.ask(format!("{at}"), &thread, ask).await {
                refused.push(why);
            }
        }
        client.until(&thread, is_idle).await;
        refused
    });
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]));
    let log = fold(&engine.log(&thread));
    (refused.unwrap(), log.messages().map(|message| message.joined_text()).collect(), report.points)
}

#[test]
fn continuing_behind_an_answer_begins_with_what_waits_whatever_dies() {
    let expected = ["Hi", "a", "s", "b", "f", "c"].map(str::to_owned).to_vec();
    let nothing = vec!["nothing_to_resume: answer_finalized".to_owned()];
    let (refused, said, points) = go_on_behind(&[], AgentSettings::default(), 4);
    assert_eq!((&refused, &said), (&nothing, &expected));
    for point in 1..=points {
        let (refused, said, _) = go_on_behind(&[point], AgentSettings::default(), 4);
        assert_eq!((&refused, &said), (&nothing, &expected), "crash at {point}");
    }
}

#[test]
fn a_failed_run_is_continued_before_what_waits() {
    let context = Some(Json::parse(r#"{"color":"red"}"#).unwrap());
    let (refused, said, _) = go_on_behind(&[], AgentSettings { context, output: None }, 3);
    assert_eq!((&*refused, &*said), (&[][..], &["Hi", "s", "a", "f", "b"].map(str::to_owned)[..]));
}

#[test]
fn messages_of_one_prompt_begin_one_run_whatever_dies() {
    let start = || {
        let messages = ["One", "Two"].map(|said| Arc::new(Message::user(said))).into();
        ThreadAsk::Start { entry: "m1".into(), messages, resume: None, options: RunOptions::default() }
    };
    let played = play(&[], vec![start(), start()], &["Hello."]);
    let expected = ["One", "Two", "Hello."];
    assert_eq!((played.requests.len(), &played.said[..]), (1, &expected.map(str::to_owned)[..]));
    for point in 1..=played.points {
        assert_eq!(play(&[point], vec![start(), start()], &["Hello."]).said, expected, "crash at {point}");
    }
}

/// Asks a question in a run, answers it twice, and gives the transcript, the last result and the points of a crash.
fn answered(crash_at: &[u64]) -> (Vec<String>, Result<String, String>, u64) {
    let model = [AssistantMessage::clarification("Which?"), AssistantMessage::text("That one.")];
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let faults = SimFaults { crash_at: crash_at.iter().copied().collect(), ..SimFaults::default() };
    let engine = SimEngine::new(faults);
    let harness = Harness::new(ScriptedModel::new(model).repeatable()).graph(graph);
    let runtime = harness.clock(Arc::new(engine.clock())).build_runtime().unwrap();
    let (client, thread) = (engine.client(), "t1".into());
    let (report, last) = engine.play(&Arc::new(runtime), async {
        let is_idle = |state: &ThreadState| matches!(state.status(), ThreadStatus::Idle);
        client.ask("first", &thread, prompt(AgentSettings::default())).await;
        let asked = client.until(&thread, is_idle).await.last().unwrap().clone().unwrap();
        let continuation = asked.continuation.clone().unwrap();
        for answer in ["the red one", "the blue one"] {
            let resume =
                Some(Box::new(ResumeAsk::new((*continuation).clone(), Some(Resume::answer(answer)))));
            let (entry, messages, options) = (answer.into(), Vec::new(), RunOptions::default());
            let ask = ThreadAsk::Start { entry, messages, resume, options };
            assert!(matches!(client.ask(answer, &thread, ask).await, ThreadReply::Accepted(Some(_))));
            client.until(&thread, is_idle).await;
        }
        client.until(&thread, is_idle).await.last().unwrap().clone()
    });
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]));
    let said = fold(&engine.log(&thread)).messages().map(|message| message.joined_text()).collect();
    (said, last.unwrap().map(|end| end.reason().to_string()), report.points)
}

#[test]
fn a_question_is_answered_once_whatever_dies() {
    let (said, last, points) = answered(&[]);
    assert_eq!(said, ["Hi", "Which?", "the red one", "That one."]);
    let why = last.clone().unwrap_err();
    assert!(why.ends_with("it was made at 2 messages, the transcript has 4"), "{why}");
    for point in 1..=points {
        let (also_said, also_last, _) = answered(&[point]);
        assert_eq!((also_said, also_last), (said.clone(), last.clone()), "crash at {point}");
    }
}

#[test]
fn a_parked_run_is_decided_and_not_resumed() {
    let request = ApprovalRequest::new("a1", "payment", "pay 5 euros");
    let model = [AssistantMessage::approval_request(&request), AssistantMessage::text("Paid.")];
    let graph = BoundGraph::bind::<String>(&load_text(DESK).unwrap(), []).unwrap();
    let engine = SimEngine::new(SimFaults::default());
    let harness = Harness::new(ScriptedModel::new(model).repeatable()).graph(graph);
    let runtime = harness.clock(Arc::new(engine.clock())).build_runtime().unwrap();
    let (client, thread) = (engine.client(), "t1".into());
    let (report, replies) = engine.play(&Arc::new(runtime), async {
        client.ask("first", &thread, prompt(AgentSettings::default())).await;
        let parked = client.until(&thread, |state| matches!(state.status(), ThreadStatus::Parked(_))).await;
        let continuation = parked.last().unwrap().clone().unwrap().continuation.clone().unwrap();
        let resume = Some(Box::new(ResumeAsk::new(*continuation, Some(Resume::answer("no")))));
        let (messages, options) = (Vec::new(), RunOptions::default());
        let ask = ThreadAsk::Start { entry: "m2".into(), messages, resume, options };
        let refused = client.ask("resume", &thread, ask).await;
        let granted = ThreadAsk::Decide(CallDecision::granted("a1"));
        (refused, client.ask("decide", &thread, granted).await)
    });
    assert_eq!((&report.stuck[..], &report.violations[..]), (&[][..], &[][..]));
    let (refused, granted) = replies.unwrap();
    let why = "refused: calls of thread `t1` wait for decisions; decide about each, or say something else";
    assert_eq!(refused, ThreadReply::Refused(why.to_owned()));
    assert!(matches!(granted, ThreadReply::Accepted(_)), "{granted:?}");
    let log = fold(&engine.log(&thread));
    assert_eq!(log.messages().last().unwrap().joined_text(), "Paid.");
}

#[test]
fn continuing_a_complete_transcript_asks_the_model_again() {
    let go_on = ThreadAsk::Continue { options: RunOptions::default() };
    let played = play(&[], vec![seed(&["Old", "Done."]), go_on], &["unused", "Hello."]);
    assert_eq!(played.said, ["Old", "Done.", "Hello."]);
}
