//! Going on behind steps that broke off.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, Usage};
use harness_core::port::{ModelFault, ModelFaultCode};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, End, Json, Origin, Time};

use crate::bare::bare;

/// A step in short: `text`, `half~length` with a stop reason, `-` says nothing, `!code` fails, `!code text` fails
/// behind that text, `#id` calls, `#id~length` calls and breaks off.
fn step(code: &str) -> ModelStep {
    if let Some(fault) = code.strip_prefix('!') {
        let (code, said) = fault.split_once(' ').unwrap_or((fault, ""));
        let code = Json::string(code).to::<ModelFaultCode>().expect("a code");
        let fault = ModelFault::new(code, "overloaded");
        let mut partial = AssistantMessage::text(said).with_usage(Usage::tokens(10, 5));
        partial.content.push(Block::ToolCall(Arc::new(call("cut"))));
        partial.stop_reason = FinishReason::Error;
        return ModelStep::fault(if said.is_empty() { fault } else { fault.with_partial(partial) });
    }
    let (said, stop) = code.split_once('~').unwrap_or((code, ""));
    let mut answer = match said.strip_prefix('#') {
        Some(id) => AssistantMessage::calls([call(id)]),
        None if said == "-" => AssistantMessage::text(""),
        None => AssistantMessage::text(said),
    };
    if !stop.is_empty() {
        answer.stop_reason = FinishReason::from(stop);
    }
    ModelStep::answer(answer.with_usage(Usage::tokens(10, 5)))
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "work", Json::empty_object())
}

/// A message in short: `u:text`, `a:text` with the calls, `o:call` with the code of what did not go well.
fn short(message: &Message) -> String {
    match message {
        Message::Assistant(answer) => {
            let calls = answer.tool_calls().fold(String::new(), |calls, call| format!("{calls}#{}", call.id));
            format!("a:{}{calls}", answer.joined_text())
        }
        Message::ToolResult(result) => {
            format!("o:{}{}", result.tool_call_id, if result.is_error { "!" } else { "" })
        }
        other => format!("u:{}", other.joined_text()),
    }
}

struct Ran {
    end: Arc<End>,
    /// What the last request showed.
    asked: Vec<String>,
    transcript: Vec<String>,
    /// What was told of going on.
    continued: Vec<String>,
}

async fn run(continue_broken: u32, steps: impl IntoIterator<Item = String>) -> Ran {
    let mut spec = bare();
    (spec.continue_broken, spec.limits.iterations) = (continue_broken, 20);
    let model = Arc::new(ScriptedModel::new(steps.into_iter().map(|code| step(&code))));
    let mut ports = Ports::new(model.clone(), Arc::new(VirtualClock::still(Time(0))));
    let answers = (0..200).map(|_| ToolStep::outcome(ToolOutcome::text("done")).of("work"));
    ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("work", "")]).answering(answers));
    let log = EventLog::default();
    ports.hub.fold(log.clone());
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let mut asked = Vec::new();
    if let Some(last) = model.requests().last() {
        last.view.for_each(|message| asked.push(short(message)));
    }
    let continued = log.events().into_iter().filter_map(|event| match event.kind {
        EventKind::ModelStepContinued { reason, attempt, most } => Some(format!("{reason} {attempt}/{most}")),
        _ => None,
    });
    let transcript: Vec<String> = turn.log().iter().map(|message| short(message)).collect();
    crate::laws::check_calls_and_results(turn.log().iter(), false);
    Ran { end, asked, transcript, continued: continued.collect() }
}

/// Steps in short, then: why the turn ended, what the last request showed, and the transcript.
async fn check(steps: &str, reason: &str, asked: &str, transcript: &str) {
    let ran = run(3, steps.split(", ").map(str::to_owned)).await;
    assert_eq!(ran.end.reason().as_str(), reason, "{:?}", ran.end);
    assert_eq!(ran.asked.join(" "), asked);
    assert_eq!(ran.transcript.join(" "), transcript);
}

#[tokio::test]
async fn an_incomplete_answer_is_gone_on_from_and_stays() {
    for stop in ["length", "paused", "contentFilter"] {
        let steps = format!("half~{stop}, whole");
        check(&steps, "answer_finalized", "u:go a:half u:continue", "u:go a:half a:whole").await;
    }
}

#[tokio::test]
async fn a_model_that_fails_on_its_way_is_asked_again_and_what_it_said_stays() {
    check("!provider, whole", "answer_finalized", "u:go u:continue", "u:go a:whole").await;
    let asked = "u:go a:half#cut o:cut! u:continue";
    check("!network half, whole", "answer_finalized", asked, "u:go a:half#cut o:cut! a:whole").await;
}

#[tokio::test]
async fn an_empty_answer_is_no_answer() {
    check("-, whole", "answer_finalized", "u:go a: u:continue", "u:go a: a:whole").await;
}

#[tokio::test]
async fn calls_of_an_incomplete_answer_do_not_run() {
    let transcript = "u:go a:#k1 o:k1! a:#k2 o:k2 a:done";
    check("#k1~length, #k2, done", "answer_finalized", "u:go a:#k1 o:k1! a:#k2 o:k2", transcript).await;
}

#[tokio::test]
async fn after_three_in_a_row_the_failure_counts() {
    let steps = "!provider, !provider, !provider, !provider";
    check(steps, "runtime_error", "u:go u:continue", "u:go a:").await;
    let (asked, all) = ("u:go a:1 a:2 a:3 u:continue", "u:go a:1 a:2 a:3 a:4 a:");
    check("1~length, 2~length, 3~length, 4~length", "runtime_error", asked, all).await;
}

#[tokio::test]
async fn a_good_round_begins_the_count_anew() {
    let steps = "!provider, !provider, !provider, #k1, !provider, !provider, !provider, done";
    let asked = "u:go a:#k1 o:k1 u:continue";
    check(steps, "answer_finalized", asked, "u:go a:#k1 o:k1 a:done").await;
}

#[tokio::test]
async fn what_another_attempt_cannot_mend_ends_the_turn() {
    for code in ["auth_failed", "invalid_request", "rate_limited", "configuration", "unknown"] {
        check(&format!("!{code}"), "runtime_error", "u:go", "u:go a:").await;
    }
    check("!cancelled", "cancelled", "u:go", "u:go a:").await;
    check("!budget_reached", "budget_reached", "u:go", "u:go").await;
}

#[tokio::test]
async fn what_was_used_counts_also_where_a_step_broke_off() {
    let ran = run(3, ["half~length", "!network more", "whole"].map(str::to_owned)).await;
    assert_eq!((ran.end.usage.input_tokens, ran.end.usage.output_tokens), (Some(30), Some(15)));
    assert_eq!(ran.continued, ["incomplete_answer 1/3", "network 2/3"]);
}

#[tokio::test]
async fn law_3_the_limits_of_the_turn_bound_it_too() {
    let ran = run(u32::MAX, (0..200).map(|n| format!("{n}~length"))).await;
    assert_eq!(ran.end.reason().as_str(), "max_iterations_reached");
    assert_eq!(ran.transcript.len(), 21);
}

#[tokio::test]
async fn calls_whose_arguments_nobody_could_read_do_not_run() {
    let mut unread = call("k1");
    unread.arguments_mode = Some("invalid".to_owned());
    unread.raw_arguments = Some("{oops".to_owned());
    let steps = [AssistantMessage::calls([unread]), AssistantMessage::text("done")].map(ModelStep::answer);
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::still(Time(0))));
    ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("work", "")]));
    let spec = Arc::new(bare());
    let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let result = turn.log().get(2).expect("a result").joined_text();
    assert_eq!(result, "The arguments are not JSON: {oops");
}
