//! The laws that always hold, on random scenarios.

use std::sync::Arc;

use harness_core::event::{Event, EventKind};
use harness_core::limits::Limit;
use harness_core::machine::{Effect, Machine, Phase};
use harness_core::message::Message;
use harness_core::outcome::{ContinuationKind, StopMode};
use harness_core::run::RunState;
use harness_core::testing::{self, ScriptedDriver, replay};
use harness_core::transcript::Transcript;
use harness_core::turn::TurnState;
use harness_core::{End, Evidence, Json, Outcome, Stop, StopReason};
use proptest::prelude::*;

use crate::run_case::{RunCase, run_case};
use crate::world::{BEGIN, Case, World, begin, case, finish, told};

type Driver = ScriptedDriver<TurnState, World>;

pub(crate) fn cases(n: u32) -> ProptestConfig {
    ProptestConfig {
        cases: n,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

fn end(driver: &Driver) -> Arc<End> {
    Arc::clone(driver.machine().end().expect("an end"))
}

/// Every call has exactly one result, right after its message, in call order. Results may only be
/// missing behind a parked call of the last batch.
pub(crate) fn check_calls_and_results<'a>(messages: impl Iterator<Item = &'a Arc<Message>>, parked: bool) {
    let mut owed: Vec<_> = Vec::new();
    for (at, message) in messages.enumerate() {
        match &**message {
            Message::ToolResult(result) => {
                assert!(!owed.is_empty(), "a result without a call at {at}");
                assert_eq!(result.tool_call_id, owed.remove(0), "out of call order at {at}");
            }
            Message::Assistant(message) => {
                assert!(owed.is_empty(), "calls without results before {at}");
                owed = message.tool_calls().map(|call| call.id.clone()).collect();
            }
            Message::User(_) | Message::System(_) | Message::Custom(_) => {
                assert!(owed.is_empty(), "calls without results before {at}");
            }
            _ => unreachable!("no other kind of message"),
        }
    }
    assert!(owed.is_empty() || parked, "calls without results at the end: {owed:?}");
}

fn is_parked(end: &End) -> bool {
    end.continuation.as_ref().is_some_and(|c| !c.pending.is_empty())
}

fn check_evidence(end: &End) {
    let evidence = &end.stop.evidence;
    match end.reason() {
        StopReason::AnswerFinalized => assert!(end.answer.is_some()),
        StopReason::ClarificationRequired | StopReason::ModelRefused => assert!(end.answer.is_some()),
        StopReason::ApprovalRequired => match evidence {
            Evidence::Approval(_) => {}
            Evidence::Held(held) => assert!(!held.is_empty() && is_parked(end)),
            other => panic!("no evidence of an approval: {other:?}"),
        },
        StopReason::MaxIterationsReached => check_limit(end, &[Limit::Iterations]),
        StopReason::MaxToolCallsReached => check_limit(end, &[Limit::ToolCalls]),
        StopReason::TimeoutReached => check_limit(end, &[Limit::Elapsed]),
        StopReason::BudgetReached => check_limit(end, &[Limit::Tokens, Limit::Cost]),
        StopReason::ContextOverflow => match evidence {
            Evidence::Fault(_) => {}
            Evidence::Limit(_) => check_limit(end, &[Limit::Context]),
            other => panic!("no evidence of an overflow: {other:?}"),
        },
        StopReason::RedundantToolLoop => {
            assert!(matches!(evidence, Evidence::Tool { .. } | Evidence::Loop { .. }), "{evidence:?}");
        }
        StopReason::ToolUnavailable | StopReason::ToolErrorUnrecoverable => {
            assert!(matches!(evidence, Evidence::Tool { .. }), "{evidence:?}");
        }
        StopReason::ModelInvalidResponse => assert!(matches!(evidence, Evidence::Invalid(_)), "{evidence:?}"),
        StopReason::RuntimeError => assert!(matches!(evidence, Evidence::Fault(_)), "{evidence:?}"),
        StopReason::GuardrailTriggered => {
            assert!(matches!(evidence, Evidence::Guardrail { .. }) && end.answer.is_none(), "{end:?}");
        }
        StopReason::PolicyDenied => assert!(matches!(evidence, Evidence::Gate { .. }), "{evidence:?}"),
        StopReason::Cancelled => assert!(matches!(evidence, Evidence::Cancelled { .. }), "{evidence:?}"),
        other => panic!("`{other}` ends no bare turn: {evidence:?}"),
    }
}

fn check_limit(end: &End, limits: &[Limit]) {
    let Evidence::Limit(reached) = end.stop.evidence else { panic!("no limit: {:?}", end.stop) };
    assert!(limits.contains(&reached.limit), "{reached:?}");
}

fn check_continuation(end: &End) {
    let kind = match end.outcome() {
        Outcome::NeedsClarification => Some(ContinuationKind::Clarification),
        Outcome::AwaitingApproval => Some(ContinuationKind::Approval),
        Outcome::Deferred => Some(ContinuationKind::Deferred),
        Outcome::Completed | Outcome::Failed => None,
    };
    assert_eq!(end.continuation.as_ref().map(|c| c.kind), kind);
}

fn check_limits(case: &Case, driver: &Driver) {
    let (limits, end, world) = (&case.spec.limits, end(driver), driver.outside());
    assert!(world.model_requests <= limits.iterations, "{} model requests", world.model_requests);
    assert!(world.first_attempts <= limits.tool_calls, "{} calls", world.first_attempts);
    assert!(end.usage.tool_calls <= limits.tool_calls, "{:?}", end.usage);
    if let (StopReason::MaxIterationsReached, Evidence::Limit(reached)) = (end.reason(), &end.stop.evidence) {
        let ceiling = u32::try_from(reached.ceiling).expect("a number of iterations");
        assert!(ceiling == limits.iterations, "{reached:?}");
        assert!(world.model_requests >= ceiling, "{reached:?} after {} requests", world.model_requests);
    }
    if end.reason() == StopReason::MaxToolCallsReached && !case.spec.closing_step {
        assert_eq!(end.usage.tool_calls, limits.tool_calls, "{:?}", end.usage);
    }
    if let Some(elapsed) = limits.elapsed {
        // An interruption just before the deadline takes its own grace period. A store is never cut off: what runs at the
        // deadline answers, and what follows it is stored.
        let most = elapsed.0 + 2 * case.grace + 4 * case.store_takes.unwrap_or(0);
        assert!(end.elapsed.0 <= most, "it took {}", end.elapsed);
    }
}

fn check_order(events: &[Event], end: &End) {
    assert!(events.iter().zip(0..).all(|(event, n)| event.seq == n), "the numbers have gaps");
    assert!(events.is_sorted_by_key(|event| event.at), "the time runs backwards");
    let ends = events.iter().filter(|e| matches!(e.kind, EventKind::TurnFinished { .. })).count();
    assert_eq!(ends, 1);
    // While a hook looks at the end it may fail, and what is pushed in still comes into the transcript.
    let is_after =
        |e: &&Event| matches!(e.kind, EventKind::MessageAppended { .. } | EventKind::PartFailed { .. });
    let last = events.iter().rfind(|e| !is_after(e));
    let Some(EventKind::TurnFinished { end: told }) = last.map(|e| &e.kind) else {
        panic!("the end is not the last event");
    };
    assert_eq!(**told, *end);
    check_calls_told(events);
}

/// A call that started is told to have ended exactly once.
fn check_calls_told(events: &[Event]) {
    let started = events.iter().filter(|e| matches!(e.kind, EventKind::ToolStarted { .. })).count();
    let ended = events.iter().filter(|e| match e.kind {
        EventKind::ToolFinished { .. } => true,
        EventKind::ToolFailed { ran, .. } => ran,
        _ => false,
    });
    assert_eq!(started, ended.count(), "starts and ends of calls");
}

fn events_of(effects: &[Effect]) -> Vec<Event> {
    effects
        .iter()
        .filter_map(|e| if let Effect::Event(event) = e { Some(event.clone()) } else { None })
        .collect()
}

fn messages<P: Phase>(machine: &Machine<P>) -> Vec<Arc<Message>> {
    machine.log().iter().cloned().collect()
}

/// Law 7: equal inputs give equal events, messages and ends.
fn check_replays<P: Phase>(driver: &ScriptedDriver<P, World>, new: impl Fn(Transcript) -> Machine<P>) {
    let mut again = new(Transcript::default());
    let events = events_of(&replay(&mut again, driver.inputs()));
    assert!(events == driver.events(), "other events\n{}", told(driver));
    assert!(messages(&again) == messages(driver.machine()), "other messages\n{}", told(driver));
    assert_eq!(again.end(), driver.machine().end());
}

fn check_run_limits(case: &RunCase, driver: &ScriptedDriver<RunState, World>, end: &End) {
    let (limits, world) = (&case.spec.limits, driver.outside());
    assert!(end.turns <= limits.turns);
    assert!(world.model_requests <= limits.amount.iterations, "{} model requests", world.model_requests);
    assert!(world.first_attempts <= limits.amount.tool_calls, "{} calls", world.first_attempts);
    assert_eq!(end.reason() == StopReason::CompletionWaived, !end.waived.is_empty());
    if case.spec.mode == StopMode::StrictAutomation {
        assert!(end.waived.is_empty(), "a strict run waived");
    }
    if end.outcome() == Outcome::Completed {
        let last = driver.events().iter().rev().find(|e| matches!(e.kind, EventKind::TurnFinished { .. }));
        let Some(EventKind::TurnFinished { end: turn }) = last.map(|e| &e.kind) else { panic!("no turn") };
        assert_eq!(turn.reason(), StopReason::AnswerFinalized);
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn law_1_every_call_has_exactly_one_result_in_call_order(case in case()) {
        let driver = case.run();
        check_calls_and_results(driver.machine().log().iter(), is_parked(&end(&driver)));
        prop_assert_eq!(testing::laws::calls(driver.machine().log().iter(), &end(&driver)), Ok(()));
    }

    #[test]
    fn law_2_every_turn_ends_once_with_a_legal_reason_and_its_evidence(case in case()) {
        let driver = case.run();
        let end = end(&driver);
        check_evidence(&end);
        check_continuation(&end);
        prop_assert_eq!(testing::laws::end(&end), Ok(()));
    }

    #[test]
    fn law_3_no_limit_is_passed(case in case()) {
        let driver = case.run();
        check_limits(&case, &driver);
        prop_assert_eq!(testing::laws::limits(&end(&driver), &case.spec.limits.amount()), Ok(()));
    }

    #[test]
    fn law_7_without_listeners_a_turn_does_the_same(case in case()) {
        let driver = case.run();
        let mut heard = replay(&mut case.machine(), driver.inputs());
        heard.retain(|effect| !matches!(effect, Effect::Event(_)));
        let mut silent = case.clone();
        silent.ports.listeners = false;
        prop_assert_eq!(replay(&mut silent.machine(), driver.inputs()), heard);
    }

    #[test]
    fn law_7_events_are_ordered_and_replays_give_the_same(case in case()) {
        let driver = case.run();
        check_order(driver.events(), &end(&driver));
        prop_assert_eq!(testing::laws::events(driver.events()), Ok(()));
        check_replays(&driver, |log| case.machine_over(log));
    }

    #[test]
    fn law_4_a_failing_store_loses_nothing_silently_and_starts_nothing_unstored(mut case in case()) {
        case.repeated_ids = false;
        let mut driver = case.driver();
        driver.outside_mut().store_fails = true;
        let ran = case.drive(&mut driver, begin());
        finish(&mut driver, ran);
        let (durable, all): (Vec<_>, _) = (driver.journal().messages().cloned().collect(), messages(driver.machine()));
        prop_assert_eq!(&durable[..], &all[..durable.len()], "what is stored is no prefix");
        let end = end(&driver);
        prop_assert_eq!(durable.len(), driver.machine().stored(), "{}", told(&driver));
        prop_assert_eq!(driver.outside().unstored_starts, 0, "{}", told(&driver));
        check_calls_and_results(driver.machine().log().iter(), is_parked(&end));
    }

    #[test]
    fn law_4_what_is_told_is_durable(case in case()) {
        let driver = case.run();
        let durable: Vec<_> = driver.journal().messages().cloned().collect();
        prop_assert_eq!(durable, messages(driver.machine()));
        prop_assert!(driver.now() >= BEGIN);
    }

    #[test]
    fn the_laws_hold_for_runs_of_several_turns(case in run_case()) {
        let mut driver = case.driver();
        let ran = case.turn.drive(&mut driver, begin());
        finish(&mut driver, ran);
        let end = Arc::clone(driver.machine().end().expect("an end"));
        check_calls_and_results(driver.machine().log().iter(), is_parked(&end));
        check_run_limits(&case, &driver, &end);
        let durable: Vec<_> = driver.journal().messages().cloned().collect();
        prop_assert_eq!(durable, messages(driver.machine()));
        let turns = end.turns as usize;
        let events = driver.events();
        prop_assert!(events.iter().zip(0..).all(|(event, n)| event.seq == n));
        let count = |name: &str| events.iter().filter(|e| e.kind.name() == name).count();
        prop_assert_eq!(count("run_finished"), 1);
        prop_assert_eq!(count("turn_finished"), turns);
        let last = &events[events.len() - 1].kind;
        prop_assert_eq!(last, &EventKind::RunFinished { end });
        check_calls_told(events);
        check_replays(&driver, |log| case.machine_over(log));
    }
}

#[test]
fn law_2_there_are_no_other_pairs_than_these() {
    let pairs: Vec<String> =
        StopReason::ALL.iter().map(|reason| format!("{}: {reason}", reason.outcome())).collect();
    insta::assert_snapshot!(pairs.join("\n"), @r#"
    completed: answer_finalized
    completed: completion_waived
    needs_clarification: clarification_required
    awaiting_approval: approval_required
    deferred: max_iterations_reached
    deferred: max_tool_calls_reached
    deferred: timeout_reached
    deferred: budget_reached
    deferred: context_overflow
    deferred: max_turns_reached
    deferred: stalled
    deferred: backend_deferred
    failed: redundant_tool_loop
    failed: tool_unavailable
    failed: tool_error_unrecoverable
    failed: model_refused
    failed: model_invalid_response
    failed: invalid_output
    failed: runtime_error
    failed: evidence_density_violation
    failed: policy_denied
    failed: guardrail_triggered
    failed: cancelled
    failed: internal_invariant
    "#);
    // What is printed and stored says the reason's own outcome: there is no other to say.
    for reason in StopReason::ALL {
        let told = Json::of(&Stop::from(reason)).expect("JSON");
        assert_eq!(told.to::<Stop>().expect("a stop").outcome(), reason.outcome());
    }
}
