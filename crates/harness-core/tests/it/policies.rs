//! Policies as a gate: what is decided, what becomes of it, what is recorded.

use std::sync::Arc;

use harness_core::decide::policy::{NotConfigured, Policies, Policy, PolicyDecision};
use harness_core::decide::{DecideCx, DynGate, Guarded, gate};
use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AgentConfig, AgentSource, PrepareAsk, ProposedCall};
use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::Turn;
use harness_core::{Cancel, End, Fault, FaultSource, Json, Origin, Time};

use crate::bare::bare;

const NOW: Time = Time(1_767_225_600_000);

/// A desk that may pay, and may hand over to an expert.
struct Desk;

impl AgentSource for Desk {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let agent = ask.agent.clone().unwrap_or_else(|| "desk".into());
        let handoff = ToolDef::handoff("to_expert", "", "expert".into());
        let mut config = AgentConfig::new(agent, "");
        config.handoffs = vec![handoff];
        Ok(config)
    }
}

type Gates = Vec<Guarded<dyn DynGate>>;

struct Seen {
    end: Arc<End>,
    results: Vec<String>,
    facts: Vec<Json>,
    ran: usize,
}

/// One call, and then an answer, through a gate.
async fn seen(gates: Gates, name: &str, arguments: &str) -> Seen {
    let call = ToolCall::new("c1", name, json(arguments));
    let model = ScriptedModel::new([AssistantMessage::calls([call]), AssistantMessage::text("went on")]);
    let tools = ScriptedTools::new([ToolDef::new("pay", "pays")]).answering([ToolOutcome::text("paid")]);
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(NOW)));
    ports.tools = Arc::new(tools.clone());
    ports.agents = Arc::new(Desk);
    ports.gates = gates;
    ports.hub.fold(events.clone());
    let spec = Arc::new(bare());
    let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let facts = events.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Decided { facts, .. } => facts,
        _ => None,
    });
    let results = turn.log().iter().filter(|message| message.as_tool_result().is_some());
    Seen {
        results: results.map(|message| message.joined_text()).collect(),
        facts: facts.collect(),
        ran: tools.executions().len(),
        end,
    }
}

fn field(facts: &Json, name: &str) -> Option<Json> {
    let entries = facts.entries().expect("an object");
    entries.into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

fn text_of(facts: &Json, name: &str) -> Option<String> {
    field(facts, name).map(|value| value.to().expect("a text"))
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn pays(policy: impl Policy + 'static) -> Gates {
    vec![gate::policy(policy)]
}

fn deciding(decision: PolicyDecision) -> Gates {
    pays(move |_: &ProposedCall| decision.clone())
}

/// A call of `pay`: how the turn ends, what the gate's reason was, and what the call's result is.
#[track_caller]
fn check(gates: Gates, expected: (&str, &str, &str)) {
    check_call(gates, "pay", expected);
}

#[track_caller]
fn check_call(gates: Gates, name: &str, (reason, decided, result): (&str, &str, &str)) {
    let seen = run(gates, name, r#"{"cents":5}"#);
    let told = seen.facts.first().and_then(|facts| text_of(facts, "reason")).unwrap_or_default();
    let said = seen.results.first().map(String::as_str).unwrap_or_default();
    assert_eq!((seen.end.reason().as_str(), told.as_str(), said), (reason, decided, result));
    assert_eq!(seen.ran, usize::from(result == "paid"), "only an allowed call runs");
}

fn run(gates: Gates, name: &str, arguments: &str) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(seen(gates, name, arguments))
}

#[test]
fn what_a_policy_allows_runs() {
    check(deciding(PolicyDecision::allow("small")), ("answer_finalized", "small", "paid"));
    check(Vec::new(), ("answer_finalized", "", "paid"));
}

#[test]
fn a_denial_ends_the_turn_unless_the_model_is_to_read_it() {
    let denied = PolicyDecision::deny("too_much");
    let told = r#"{"status":"denied","code":"too_much","publicReason":"Action not allowed.","data":null}"#;
    check(deciding(denied.clone()), ("policy_denied", "too_much", told));
    check(deciding(denied.clone().answering_model()), ("answer_finalized", "too_much", told));
    let told = r#"{"status":"denied","code":"too_much","publicReason":"Ask your bank.","data":null}"#;
    let public = denied.answering_model().with_public_reason("  Ask your bank. ");
    check(deciding(public), ("answer_finalized", "too_much", told));
}

#[test]
fn a_required_approval_parks_the_turn_unless_the_model_is_to_read_it() {
    let required = PolicyDecision::require_approval("four_eyes");
    check(deciding(required.clone()), ("approval_required", "four_eyes", ""));
    let told = r#"{"status":"approval_required","code":"four_eyes","publicReason":"Action requires approval.","data":null}"#;
    check(deciding(required.answering_model()), ("answer_finalized", "four_eyes", told));
}

#[test]
fn everything_fails_closed() {
    let envelope = |code: &str| {
        format!(r#"{{"status":"denied","code":"{code}","publicReason":"Action not allowed.","data":null}}"#)
    };
    let denied = |gates: Gates, code: &str| check(gates, ("policy_denied", code, &envelope(code)));
    denied(vec![gate::policy(NotConfigured)], "policy_not_configured");
    denied(deciding(PolicyDecision::allow(" ")), "invalid_policy_result");
    denied(pays(Policies::new()), "deny_unconfigured_tool_pay");
    denied(pays(Faulty), "policy_error");
    denied(pays(|_: &ProposedCall| -> PolicyDecision { panic!("out of order") }), "policy_error");
}

struct Faulty;

impl Policy for Faulty {
    async fn decide(&self, _: &ProposedCall, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Err(Fault::new(FaultSource::Gate, "unreachable", "the policy service does not answer"))
    }
}

#[test]
fn the_facts_of_a_failed_policy_say_what_failed() {
    let seen = run(pays(Faulty), "pay", "{}");
    let metadata = field(&seen.facts[0], "metadata");
    let expected = r#"{"errorName":"unreachable","errorMessage":"the policy service does not answer"}"#;
    assert_eq!(metadata.as_ref().map(Json::text), Some(expected));
}

#[test]
fn policies_are_found_by_exact_name_and_then_by_star() {
    let says = |reason: &'static str| move |_: &ProposedCall| PolicyDecision::allow(reason);
    let both = || Policies::new().with("pay", says("own")).with("*", says("any"));
    check(pays(both()), ("answer_finalized", "own", "paid"));
    let others = Policies::new().with("Pay", says("other")).with("*", says("any"));
    check(pays(others), ("answer_finalized", "any", "paid"));
}

#[test]
fn handoffs_have_policies_of_their_own() {
    let moved = r#"{"handoffTo":"expert","accepted":true,"payload":{"cents":5}}"#;
    let desk = |gates: Gates, expected| check_call(gates, "to_expert", expected);
    desk(deciding(PolicyDecision::deny("no_tools")), ("answer_finalized", "", moved));
    let envelope = |code: &str| {
        format!(r#"{{"status":"denied","code":"{code}","publicReason":"Action not allowed.","data":null}}"#)
    };
    let unconfigured = envelope("policy_not_configured");
    desk(
        vec![
            gate::policy(|_: &ProposedCall| PolicyDecision::allow("tools")),
            gate::handoff_policy(NotConfigured),
        ],
        ("policy_denied", "policy_not_configured", &unconfigured),
    );
    let unnamed = envelope("deny_unconfigured_handoff_expert");
    desk(
        vec![gate::handoff_policy(Policies::new())],
        ("policy_denied", "deny_unconfigured_handoff_expert", &unnamed),
    );
    let allowed = |proposal: &ProposedCall| {
        let to = proposal.handoff_to().expect("a handoff");
        PolicyDecision::allow(format!("{} to {to}", proposal.agent))
    };
    desk(vec![gate::handoff_policy(allowed)], ("answer_finalized", "desk to expert", moved));
}

#[test]
fn the_facts_are_what_a_record_holds() {
    let mut decision = PolicyDecision::require_approval("four_eyes").with_policy_version("v3");
    decision.expires_at = Some(Time(NOW.0 + 1_000));
    decision.metadata = Some(json(r#"{"rule":7}"#));
    let seen = run(deciding(decision), "pay", r#"{"cents":5}"#);
    let lines = seen.facts[0].text().replace(",\"", ",\n\"");
    insta::assert_snapshot!(lines, @r#"
    {"decision":"require_approval",
    "reason":"four_eyes",
    "resultMode":"throw",
    "policyVersion":"v3",
    "resource":{"kind":"tool",
    "name":"pay"},
    "agentName":"desk",
    "expiresAt":"2026-01-01T00:00:01.000Z",
    "metadata":{"rule":7},
    "proposalHash":"56cfbbd92423524222830c3e76364388cc39e9ffd4bdee55765dc762fa450f93",
    "suspendedProposal":{"timestamp":"2026-01-01T00:00:00.000Z",
    "kind":"tool",
    "turn":1,
    "callId":"c1",
    "agentName":"desk",
    "proposalHash":"56cfbbd92423524222830c3e76364388cc39e9ffd4bdee55765dc762fa450f93",
    "reason":"four_eyes",
    "policyVersion":"v3",
    "expiresAt":"2026-01-01T00:00:01.000Z",
    "metadata":{"rule":7},
    "toolName":"pay",
    "rawArguments":"{\"cents\":5}",
    "parsedArguments":{"cents":5},
    "argsCanonicalJson":"{\"cents\":5}"}}
    "#);
}
