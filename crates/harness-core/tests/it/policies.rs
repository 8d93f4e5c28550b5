//! Policies as a gate: what is decided, what becomes of it, what is recorded.

use std::sync::Arc;

use harness_core::decide::policy::{
    Approved, Grant, GrantBook, GrantFault, HandoffPolicies, HandoffProposal, NotConfigured, PolicyDecision,
    PolicyFacts, RequestSeed, ToolPolicies, ToolPolicy, ToolProposal, active_by_hash, approved_hashes,
    newest_active,
};
use harness_core::decide::{DecideCx, DynGate, Guarded, gate};
use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
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
    facts: Vec<PolicyFacts>,
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
        EventKind::Decided { facts, .. } => facts.map(|facts| facts.to().expect("policy facts")),
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

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn pays(policy: impl ToolPolicy + 'static) -> Gates {
    vec![gate::policy(policy)]
}

fn deciding(decision: PolicyDecision) -> Gates {
    pays(move |_: &ToolProposal| decision.clone())
}

/// A call of `pay`: how the turn ends, what the gate's reason was, and what the call's result is.
#[track_caller]
fn check(gates: Gates, expected: (&str, &str, &str)) {
    check_call(gates, "pay", expected);
}

#[track_caller]
fn check_call(gates: Gates, name: &str, (reason, decided, result): (&str, &str, &str)) {
    let seen = run(gates, name, r#"{"cents":5}"#);
    let told = seen.facts.first().map(|facts| facts.reason.as_str()).unwrap_or_default();
    let said = seen.results.first().map(String::as_str).unwrap_or_default();
    assert_eq!((seen.end.reason().as_str(), told, said), (reason, decided, result));
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
    denied(deciding(PolicyDecision::read(&json(r#"{"decision":"allow"}"#))), "invalid_policy_result");
    denied(
        deciding(PolicyDecision::read(&json(r#"{"decision":"yes","reason":"x"}"#))),
        "invalid_policy_result",
    );
    let old = r#"{"decision":"allow","reason":"x","denyMode":"throw"}"#;
    denied(deciding(PolicyDecision::read(&json(old))), "deprecated_policy_field_denyMode");
    denied(pays(ToolPolicies::new()), "deny_unconfigured_tool_pay");
    denied(pays(Faulty), "policy_error");
    denied(pays(|_: &ToolProposal| -> PolicyDecision { panic!("out of order") }), "policy_error");
}

struct Faulty;

impl ToolPolicy for Faulty {
    async fn decide(&self, _: &ToolProposal, _: &DecideCx) -> Result<PolicyDecision, Fault> {
        Err(Fault::new(FaultSource::Gate, "unreachable", "the policy service does not answer"))
    }
}

#[test]
fn the_facts_of_a_failed_policy_say_what_failed() {
    let seen = run(pays(Faulty), "pay", "{}");
    let metadata = seen.facts[0].metadata.as_ref().map(Json::text);
    let expected = r#"{"errorName":"unreachable","errorMessage":"the policy service does not answer"}"#;
    assert_eq!(metadata, Some(expected));
}

#[test]
fn policies_are_found_by_exact_name_and_then_by_star() {
    let says = |reason: &'static str| move |_: &ToolProposal| PolicyDecision::allow(reason);
    let both = || ToolPolicies::new().with("pay", says("own")).with("*", says("any"));
    check(pays(both()), ("answer_finalized", "own", "paid"));
    let others = ToolPolicies::new().with("Pay", says("other")).with("*", says("any"));
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
            gate::policy(|_: &ToolProposal| PolicyDecision::allow("tools")),
            gate::handoff_policy(NotConfigured),
        ],
        ("policy_denied", "policy_not_configured", &unconfigured),
    );
    let unnamed = envelope("deny_unconfigured_handoff_expert");
    desk(
        vec![gate::handoff_policy(HandoffPolicies::new())],
        ("policy_denied", "deny_unconfigured_handoff_expert", &unnamed),
    );
    let allowed =
        |proposal: &HandoffProposal| PolicyDecision::allow(format!("{} to {}", proposal.from, proposal.to));
    desk(vec![gate::handoff_policy(allowed)], ("answer_finalized", "desk to expert", moved));
}

#[test]
fn the_facts_are_what_a_record_holds() {
    let decision = PolicyDecision::require_approval("four_eyes")
        .with_policy_version("v3")
        .expiring(Time(NOW.0 + 1_000))
        .with_metadata(json(r#"{"rule":7}"#));
    let seen = run(deciding(decision), "pay", r#"{"cents":5}"#);
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen.facts[0]).expect("JSON"), @r#"
    {
      "decision": "require_approval",
      "reason": "four_eyes",
      "resultMode": "throw",
      "policyVersion": "v3",
      "resource": {
        "kind": "tool",
        "name": "pay"
      },
      "agentName": "desk",
      "expiresAt": "2026-01-01T00:00:01.000Z",
      "metadata": {"rule":7},
      "proposalHash": "56cfbbd92423524222830c3e76364388cc39e9ffd4bdee55765dc762fa450f93",
      "suspendedProposal": {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "kind": "tool",
        "turn": 1,
        "callId": "c1",
        "agentName": "desk",
        "proposalHash": "56cfbbd92423524222830c3e76364388cc39e9ffd4bdee55765dc762fa450f93",
        "reason": "four_eyes",
        "policyVersion": "v3",
        "expiresAt": "2026-01-01T00:00:01.000Z",
        "metadata": {"rule":7},
        "toolName": "pay",
        "rawArguments": "{\"cents\":5}",
        "parsedArguments": {"cents":5},
        "argsCanonicalJson": "{\"cents\":5}"
      }
    }
    "#);
    let suspended = seen.facts[0].suspended_proposal.as_deref().expect("a suspended proposal");
    let request = RequestSeed::from(suspended);
    assert_eq!(
        (request.resource_name.as_str(), request.canonical_payload_json.as_str()),
        ("pay", r#"{"cents":5}"#)
    );
    assert_eq!(request.proposal_hash, ToolProposal::hash_of(&"desk".into(), &"pay".into(), r#"{"cents":5}"#));
}

/// `pay` always needs approval, and grants are looked up.
fn approved(book: &GrantBook) -> Gates {
    let required = |_: &ToolProposal| PolicyDecision::require_approval("four_eyes");
    pays(Approved::new(required, book.clone()))
}

fn hash_of(arguments: &str) -> String {
    ToolProposal::hash_of(&"desk".into(), &"pay".into(), arguments)
}

#[track_caller]
fn check_grants(grants: impl IntoIterator<Item = Grant>, arguments: &str, runs: usize) {
    let book = GrantBook::new(grants);
    assert_eq!(run(approved(&book), "pay", arguments).ran, runs);
}

#[test]
fn a_grant_counts_for_exactly_what_was_proposed_and_while_it_is_active() {
    let grant = || Grant::new(hash_of(r#"{"a":1,"b":2}"#), Time(0));
    check_grants([grant()], r#"{ "b": 2.0, "a": 1 }"#, 1);
    check_grants([grant()], r#"{"a":1,"b":3}"#, 0);
    check_grants([], r#"{"a":1,"b":2}"#, 0);
    check_grants([grant().expiring(NOW)], r#"{"a":1,"b":2}"#, 1);
    check_grants([grant().expiring(Time(NOW.0 - 1))], r#"{"a":1,"b":2}"#, 0);
    check_grants([grant().revoked(Time(1))], r#"{"a":1,"b":2}"#, 0);
}

#[test]
fn a_grant_counts_once() {
    let book = GrantBook::new([Grant::new(hash_of("{}"), Time(0)), Grant::new(hash_of("{}"), Time(0))]);
    assert_eq!(run(approved(&book), "pay", "{}").ran, 1);
    assert_eq!(book.unused(), []);
    assert_eq!(run(approved(&book), "pay", "{}").end.reason().as_str(), "approval_required");
    book.add(Grant::new(hash_of("{}"), Time(1)));
    assert_eq!(book.revoke(&hash_of("{}")), 1);
    assert_eq!(run(approved(&book), "pay", "{}").ran, 0);
}

#[test]
fn of_several_grants_the_newest_active_one_is_taken_and_ties_keep_the_first() {
    let at = |hash: &str, at: i64, end: i64| Grant::new(hash, Time(at)).expiring(Time(end));
    let grants =
        [at("a", 1, 100), at("a", 5, 9), at("a", 3, 100), at("a", 3, 200), at("b", 1, 100), at("c", 1, 1)];
    let found = newest_active(&grants, "a", Time(10)).map(|grant| (grant.approved_at.0, grant.expires_at));
    assert_eq!(found, Some((3, Some(Time(100)))));
    assert_eq!(newest_active(&grants, "c", Time(10)), None);
    let by_hash = active_by_hash(&grants, Time(10));
    assert_eq!(
        by_hash.iter().map(|(hash, grant)| (*hash, grant.approved_at.0)).collect::<Vec<_>>(),
        [("a", 3), ("b", 1)]
    );
    assert_eq!(approved_hashes(&grants, Time(10)), ["a", "b"]);
}

#[test]
fn a_stored_grant_with_a_wrong_time_is_refused() {
    let text =
        r#"{"proposalHash":"a","approvedAt":"2026-01-01T00:00:00Z","expiresAt":"2026-01-02T00:00:00.000Z"}"#;
    let grant = Grant::read(&json(text)).expect("a grant");
    assert_eq!(grant.approved_at, NOW);
    assert_eq!(Grant::read(&Json::of(&grant).expect("JSON")), Ok(grant));
    let GrantFault { problem, .. } =
        Grant::read(&json(r#"{"proposalHash":"a","approvedAt":"soon"}"#)).expect_err("no time");
    assert!(problem.contains("`soon` is no ISO 8601 timestamp"), "{problem}");
}
