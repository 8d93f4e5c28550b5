//! Work that is taken up from a continuation: what fits, what runs, and how often.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::decide::{GateDecision, GateVerdict, Guard, Points};
use harness_core::machine::{
    CallDecision, Machine, Op, PortSet, Reply, Resume, ResumeError, ResumeErrorKind, Start,
};
use harness_core::message::{ApprovalRequest, AssistantMessage, Message, ToolCall, UserMessage};
use harness_core::outcome::Continuation;
use harness_core::port::{Decision, PreparedAgent};
use harness_core::testing::{Answer, Journal, Ran, ScriptedDriver, ScriptedWorld};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::TurnState;
use harness_core::{CallId, End, Json, Millis, OpId, Origin, StopReason, Time};
use proptest::prelude::*;

use crate::bare::bare;

const BEGIN: Time = Time(1_767_225_600_000);

/// Tools `pay` (needs approval) and `look`, a model that asks for `calls` and then answers, and one gate. The work of a call
/// whose id begins with `w` waits for approval.
#[derive(Clone, Debug)]
struct Shop {
    calls: Vec<(&'static str, &'static str)>,
    pay: ToolDef,
    /// What the gate says of each call.
    verdicts: BTreeMap<CallId, GateVerdict>,
    ran: BTreeMap<CallId, Vec<String>>,
    asked: u32,
    offers_look: bool,
}

impl Shop {
    fn new(calls: &[(&'static str, &'static str)]) -> Self {
        let mut pay = ToolDef::new("pay", "pays").with_schema(json(r#"{"type":"object"}"#));
        pay.requires_approval = true;
        Self {
            calls: calls.to_vec(),
            pay,
            verdicts: BTreeMap::new(),
            ran: BTreeMap::new(),
            asked: 0,
            offers_look: true,
        }
    }

    fn saying(mut self, call: &str, verdict: GateVerdict) -> Self {
        self.verdicts.insert(call.into(), verdict);
        self
    }

    /// The executions of each call, with their arguments.
    fn ran(&self) -> String {
        let ran = self.ran.iter().map(|(call, arguments)| format!("{call} {}", arguments.join(" ")));
        ran.collect::<Vec<_>>().join("; ")
    }
}

impl ScriptedWorld for Shop {
    fn perform(&mut self, _: OpId, op: &Op, log: &Transcript) -> Answer {
        let look = ToolDef::new("look", "looks").with_class(RetryClass::Unsafe);
        Answer::now(match op {
            Op::Prepare { .. } => {
                let look = self.offers_look.then_some(look);
                let tools: Vec<_> = [self.pay.clone()].into_iter().chain(look).collect();
                Reply::Prepared(Ok(Arc::new(PreparedAgent::new("desk", "", tools))))
            }
            Op::Model { .. } => {
                self.asked += 1;
                let has_asked = log.iter().any(|message| message.as_assistant().is_some());
                let answer = if has_asked {
                    AssistantMessage::text("done")
                } else {
                    let call = |(id, name): &(&str, &str)| ToolCall::new(*id, *name, json(r#"{"cents":5}"#));
                    AssistantMessage::calls(self.calls.iter().map(call).collect::<Vec<_>>())
                };
                Reply::Model(Ok(Arc::new(answer.into())))
            }
            Op::Arguments { .. } => Reply::Arguments(Ok(())),
            Op::Gate { proposed, .. } => {
                let verdict = self.verdicts.get(&proposed.call.id).cloned().unwrap_or(GateVerdict::Allow);
                Reply::Gate(Box::new(GateDecision::from(verdict).into()))
            }
            Op::Tool { call, .. } => {
                let arguments = call.arguments.text().to_owned();
                let ran = self.ran.entry(call.id.clone()).or_default();
                ran.push(arguments);
                let mut outcome = ToolOutcome::text(format!("ran {}", call.id));
                if call.id.as_str().starts_with('w') && ran.len() == 1 {
                    outcome = outcome.waiting_for([ApprovalRequest::new("r1", "pay", "Pay, too?")]);
                }
                return Answer::After(Millis(10), Reply::Tool(Ok(Arc::new(outcome))));
            }
            other => panic!("nobody asks for {other:?} here"),
        })
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn origin() -> Origin {
    let mut origin = Origin::default();
    origin.session = Some("s-1".into());
    origin.thread = Some("th-1".into());
    origin.turn = Some("t-1".into());
    origin.descriptor_hash = Some("sha256:00".into());
    origin
}

type Driver = ScriptedDriver<TurnState, Shop>;

fn driver(shop: Shop, log: Transcript) -> Driver {
    let mut ports = PortSet::default();
    ports.gates = vec![Guard::new("gate", Points::CALL)];
    let machine = Machine::new(Arc::new(bare()), origin(), log).with_ports(ports);
    ScriptedDriver::new(machine, shop, BEGIN)
}

fn end(ran: Ran) -> Arc<End> {
    match ran {
        Ran::Ended(end) => end,
        other => panic!("{other:?}"),
    }
}

/// Runs until calls are parked.
fn park(shop: Shop) -> (Driver, Continuation) {
    let mut driver = driver(shop, Transcript::default());
    let end = end(driver.run(Start::prompt(Message::user("go"))));
    let continuation = end.continuation.clone().unwrap_or_else(|| panic!("{end:?}"));
    (driver, *continuation)
}

/// Another process, over what the one before left.
fn reopen(before: &Driver, change: impl FnOnce(&mut Shop)) -> (Driver, Start) {
    let durable = before.journal().reopen();
    let mut shop = before.outside().clone();
    change(&mut shop);
    let log = durable.messages.into_iter().collect();
    let open_calls = match before.machine().end() {
        Some(_) => before.machine().open_calls(),
        None => durable.open_calls,
    };
    (driver(shop, log), Start::resume().with_open_calls(open_calls))
}

fn start(
    continuation: &Continuation,
    resume: Resume,
    driver: &Driver,
    open: Start,
) -> Result<Start, ResumeError> {
    let mut start = continuation.clone().start(resume, &origin(), &driver.machine().log().prefix())?;
    start.open_calls = open.open_calls;
    Ok(start)
}

fn results(driver: &Driver) -> Vec<String> {
    let results = driver.machine().log().iter().filter_map(|message| message.as_tool_result());
    results.map(|result| Message::ToolResult(result.clone()).joined_text()).collect()
}

/// Parks the calls, resumes them in another process where `change` has happened, and compares what ran,
/// the results and the end.
#[track_caller]
fn check(
    shop: Shop,
    change: impl FnOnce(&mut Shop),
    decisions: impl IntoIterator<Item = CallDecision>,
    (ran, said, reason): (&str, &[&str], &str),
) -> (Driver, Arc<End>) {
    let (parked, continuation) = park(shop);
    let (mut driver, open) = reopen(&parked, change);
    let start = start(&continuation, Resume::decided(decisions), &driver, open).expect("it fits");
    let end = end(driver.run(start));
    assert_eq!(driver.outside().ran(), ran);
    assert_eq!(results(&driver), said);
    assert_eq!(end.reason().as_str(), reason);
    assert!(end.resumed);
    (driver, end)
}

fn one() -> Shop {
    Shop::new(&[("c1", "pay")])
}

fn as_it_was(_: &mut Shop) {}

const MISMATCH: &str = "Denied: the approval was given for another call. Ask for it again.";

#[test]
fn a_granted_call_is_executed_once_as_it_was_parked() {
    let expected = (r#"c1 {"cents":5}"#, ["ran c1"].as_slice(), "answer_finalized");
    check(one(), as_it_was, [CallDecision::granted("c1")], expected);
    let rewritten = one().saying("c1", GateVerdict::Rewrite(json(r#"{"cents":6}"#)));
    let expected = (r#"c1 {"cents":6}"#, ["ran c1"].as_slice(), "answer_finalized");
    check(rewritten, as_it_was, [CallDecision::granted("c1")], expected);
}

#[test]
fn of_a_denied_call_the_model_is_told() {
    let expected = ("", ["Denied: too much"].as_slice(), "answer_finalized");
    check(one(), as_it_was, [CallDecision::denied("c1", "too much")], expected);
}

#[test]
fn a_call_with_changed_arguments_runs_with_them_unless_a_gate_holds_it_again() {
    let edited = || [CallDecision::edited("c1", json(r#"{"cents":1}"#))];
    let expected = (r#"c1 {"cents":1}"#, ["ran c1"].as_slice(), "answer_finalized");
    check(one(), as_it_was, edited(), expected);
    let held = one().saying("c1", GateVerdict::Hold { reason: "four eyes".into() });
    let said = ["Denied: the changed arguments would need another approval."];
    check(held, as_it_was, edited(), ("", &said, "answer_finalized"));
}

#[test]
fn a_grant_fails_closed_when_what_would_run_is_not_what_was_approved() {
    let granted = || [CallDecision::granted("c1")];
    let rewritten = |shop: &mut Shop| {
        shop.verdicts.insert("c1".into(), GateVerdict::Rewrite(json(r#"{"cents":500}"#)));
    };
    check(one(), rewritten, granted(), ("", &[MISMATCH], "answer_finalized"));
    let other_contract = |shop: &mut Shop| shop.pay.input_schema = Some(json(r#"{"type":"array"}"#));
    check(one(), other_contract, granted(), ("", &[MISMATCH], "answer_finalized"));
    let harmless_now = |shop: &mut Shop| {
        shop.pay.requires_approval = false;
        shop.pay.metadata = Some(json(r#"{"version":2}"#));
    };
    check(one(), harmless_now, granted(), ("", &[MISMATCH], "answer_finalized"));
}

#[test]
fn a_gate_that_refuses_meanwhile_is_stronger_than_a_grant() {
    let granted = || [CallDecision::granted("c1")];
    let denies = |shop: &mut Shop| {
        shop.verdicts.insert("c1".into(), GateVerdict::Deny { message: "not any more".into() });
    };
    check(one(), denies, granted(), ("", &["not any more"], "answer_finalized"));
    let halts = |shop: &mut Shop| {
        let verdict = GateVerdict::Halt { message: "never".into(), reason: "forbidden".into() };
        shop.verdicts.insert("c1".into(), verdict);
    };
    check(one(), halts, granted(), ("", &["never"], "policy_denied"));
    let gone = |shop: &mut Shop| shop.pay.name = "refund".into();
    let said = "There is no tool named `pay`. Available: `refund`, `look`.";
    check(one(), gone, granted(), ("", &[said], "answer_finalized"));
}

#[test]
fn a_call_whose_work_waited_is_performed_again_as_it_was() {
    let looks = Shop::new(&[("w1", "look")]).saying("w1", GateVerdict::Rewrite(json(r#"{"cents":6}"#)));
    let granted = || [CallDecision::granted("w1")];
    let twice = (r#"w1 {"cents":6} {"cents":6}"#, ["ran w1"].as_slice(), "answer_finalized");
    let refuses = |shop: &mut Shop| {
        shop.verdicts.insert("w1".into(), GateVerdict::Deny { message: "not any more".into() });
    };
    check(looks.clone(), refuses, granted(), twice);
    let said =
        ["This call was cut off before it answered. It may have taken effect: check before it is repeated."];
    let gone = |shop: &mut Shop| shop.offers_look = false;
    check(looks.clone(), gone, granted(), (r#"w1 {"cents":6}"#, &said, "answer_finalized"));
    let edit = CallDecision::edited("w1", json("{}"));
    let (parked, continuation) = park(looks);
    let (driver, open) = reopen(&parked, as_it_was);
    let error = start(&continuation, Resume::decided([edit]), &driver, open).unwrap_err();
    let text = "call `w1` has started; it can only be granted or denied";
    assert_eq!((error.kind, error.message.as_str()), (ResumeErrorKind::NotEditable, text));
}

#[test]
fn a_call_that_was_edited_and_whose_work_waits_is_performed_with_the_new_arguments() {
    let ran = r#"w1 {"cents":1}"#;
    let edited = [CallDecision::edited("w1", json(r#"{"cents":1}"#))];
    let (before, end) =
        check(Shop::new(&[("w1", "pay")]), as_it_was, edited, (ran, &[], "approval_required"));
    let parked = end.continuation.as_deref().expect("a continuation");
    let (mut driver, open) = reopen(&before, as_it_was);
    let granted = CallDecision::granted("w1").having_seen(parked.pending[0].digest.clone());
    let start = start(parked, Resume::decided([granted]), &driver, open).expect("it fits");
    let end = self::end(driver.run(start));
    assert_eq!(driver.outside().ran(), r#"w1 {"cents":1} {"cents":1}"#);
    assert_eq!((results(&driver), end.reason()), (vec!["ran w1".to_owned()], StopReason::AnswerFinalized));
}

#[test]
fn several_calls_are_decided_together() {
    let shop = Shop::new(&[("c1", "pay"), ("c2", "look"), ("c3", "pay")]);
    let decisions = [CallDecision::granted("c3"), CallDecision::denied("c1", "no")];
    let ran = r#"c2 {"cents":5}; c3 {"cents":5}"#;
    check(shop, as_it_was, decisions, (ran, &["Denied: no", "ran c2", "ran c3"], "answer_finalized"));
}

#[test]
fn several_calls_are_decided_one_after_the_other() {
    let shop = Shop::new(&[("c1", "pay"), ("c2", "pay")]);
    let ran = r#"c2 {"cents":5}"#;
    let (before, end) =
        check(shop, as_it_was, [CallDecision::granted("c2")], (ran, &[], "approval_required"));
    let parked = end.continuation.as_deref().expect("a continuation");
    let waiting: Vec<_> = parked.pending.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(waiting, ["c1"]);

    let (mut driver, open) = reopen(&before, as_it_was);
    let start =
        start(parked, Resume::decided([CallDecision::granted("c1")]), &driver, open).expect("it fits");
    driver.run(start);
    assert_eq!(driver.outside().ran(), r#"c1 {"cents":5}; c2 {"cents":5}"#);
    assert_eq!(results(&driver), ["ran c1", "ran c2"]);
}

#[test]
fn a_denial_holds_while_another_call_waits() {
    let (parked, before) = park(Shop::new(&[("c1", "pay"), ("c2", "pay"), ("c3", "look")]));
    let (mut driver, open) = reopen(&parked, as_it_was);
    let denied = Resume::decided([CallDecision::denied("c2", "no")]);
    let parked = end(driver.run(start(&before, denied, &driver, open).expect("it fits")));
    let continuation = parked.continuation.as_deref().expect("a continuation");
    let waiting: Vec<_> = continuation.pending.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!((waiting, results(&driver).len()), (vec!["c1"], 0));
    // What the gates and tools permit now does not matter.
    let harmless_now = |shop: &mut Shop| shop.pay.requires_approval = false;
    let (mut driver, open) = reopen(&driver, harmless_now);
    let start = start(continuation, granted("c1"), &driver, open).expect("it fits");
    let end = end(driver.run(start));
    assert_eq!(results(&driver), ["ran c1", "Denied: no", "ran c3"]);
    assert_eq!(
        (driver.outside().ran(), end.usage.tool_calls),
        (r#"c1 {"cents":5}; c3 {"cents":5}"#.to_owned(), 1)
    );
}

#[test]
fn what_was_put_off_is_parked_as_it_was() {
    let rewritten =
        Shop::new(&[("c1", "pay"), ("c2", "pay")]).saying("c1", GateVerdict::Rewrite(json(r#"{"cents":6}"#)));
    let (parked, before) = park(rewritten);
    let (mut driver, open) = reopen(&parked, as_it_was);
    let decisions = [CallDecision::new("c1", Decision::Later), CallDecision::denied("c2", "no")];
    let start = start(&before, Resume::decided(decisions), &driver, open).expect("it fits");
    let end = end(driver.run(start));
    assert_eq!(end.continuation.as_deref().expect("a continuation").pending, before.pending[..1]);
}

/// Why it does not fit.
#[track_caller]
fn check_refused(change: impl FnOnce(&mut Continuation), resume: Resume, kind: ResumeErrorKind, text: &str) {
    let (parked, mut continuation) = park(Shop::new(&[("c1", "pay"), ("c2", "pay")]));
    change(&mut continuation);
    let error =
        continuation.start(resume, &origin(), &parked.machine().log().prefix()).expect_err("it does not fit");
    assert_eq!((error.kind, error.to_string().as_str()), (kind, text));
}

fn granted(call: &str) -> Resume {
    Resume::decided([CallDecision::granted(call)])
}

#[test]
fn a_continuation_fits_only_where_it_was_made() {
    let session = |made: &mut Continuation| made.session_id = Some("s-2".into());
    let text = "continuation `t-1:approval` belongs to session `s-2`, not to session `s-1`";
    check_refused(session, granted("c1"), ResumeErrorKind::OtherSession, text);
    let thread = |made: &mut Continuation| made.thread_id = None;
    let text = "continuation `t-1:approval` belongs to no thread, not to thread `th-1`";
    check_refused(thread, granted("c1"), ResumeErrorKind::OtherThread, text);
    let descriptor = |made: &mut Continuation| made.descriptor_hash = Some("sha256:11".into());
    let text = "continuation `t-1:approval` belongs to descriptor `sha256:11`, not to descriptor `sha256:00`; accept \
                the change with `under_descriptor`";
    check_refused(descriptor, granted("c1"), ResumeErrorKind::OtherDescriptor, text);
    let stale = |made: &mut Continuation| made.transcript_len = 7;
    let text = "continuation `t-1:approval` was made at 7 messages; the transcript has only 2";
    check_refused(stale, granted("c1"), ResumeErrorKind::Stale, text);
}

#[test]
fn law_9_another_descriptor_is_an_explicit_choice() {
    let (parked, mut continuation) = park(one());
    continuation.descriptor_hash = Some("sha256:11".into());
    let chosen = continuation.under_descriptor(Some("sha256:00"));
    let (driver, open) = reopen(&parked, as_it_was);
    assert!(start(&chosen, granted("c1"), &driver, open).is_ok());
}

#[test]
fn decisions_fit_only_what_is_parked() {
    let none = |_: &mut Continuation| {};
    let text = "call `c9` is not pending; pending calls: `c1`, `c2`";
    check_refused(none, granted("c9"), ResumeErrorKind::NotParked, text);
    let text = "two decisions given for call `c1`";
    let twice = Resume::decided([CallDecision::granted("c1"), CallDecision::denied("c1", "no")]);
    check_refused(none, twice, ResumeErrorKind::DecidedTwice, text);
    let text = "no decision given for continuation `t-1:approval`; pending calls: `c1`, `c2`";
    check_refused(none, Resume::decided([]), ResumeErrorKind::NothingDecided, text);
    let text = "continuation `t-1:approval` needs approval, got clarification";
    check_refused(none, Resume::answer("yes"), ResumeErrorKind::OtherKind, text);
    let seen = Resume::decided([CallDecision::granted("c1").having_seen("other")]);
    let (_, parked) = park(one());
    let digest = &parked.pending[0].digest;
    let text = format!("the decision for call `c1` is about other, but {digest} is pending");
    check_refused(none, seen, ResumeErrorKind::OtherCall, &text);
}

#[test]
fn a_continuation_is_used_once() {
    let (parked, continuation) = park(one());
    let (mut driver, open) = reopen(&parked, as_it_was);
    let first = start(&continuation, granted("c1"), &driver, open).expect("it fits");
    driver.run(first);
    let again = continuation.start(granted("c1"), &origin(), &driver.machine().log().prefix());
    assert_eq!(again.expect_err("used").kind, ResumeErrorKind::Consumed);
}

#[test]
fn what_waits_behind_parked_calls_comes_after_their_results() {
    let (parked, mut continuation) = park(Shop::new(&[("c1", "pay"), ("c2", "look")]));
    continuation.waiting.push(Arc::new(UserMessage::text("and hurry").from_origin("steering").into()));
    let (mut next, open) = reopen(&parked, as_it_was);
    let start = start(&continuation, granted("c1"), &next, open).expect("it fits");
    next.run(start);
    let said: Vec<_> = next.machine().log().iter().map(|message| message.joined_text()).collect();
    assert_eq!(said, ["go", "", "ran c1", "ran c2", "and hurry", "done"]);
}

/// The process dies after the n-th effect of resuming, as often as there are effects; each time another one
/// takes the same continuation up again with the same decisions, or just goes on when that is used up.
#[track_caller]
fn check_crashes(shop: &Shop, decisions: &[CallDecision], at_most: &[(&str, usize)]) {
    for n in 1.. {
        let (parked, continuation) = park(shop.clone());
        let (dying, open) = reopen(&parked, as_it_was);
        let mut dying = dying.crash_after(n);
        let first = start(&continuation, Resume::decided(decisions.to_vec()), &dying, open).expect("it fits");
        if dying.run(first) != Ran::Crashed {
            return;
        }
        let (mut driver, open) = reopen_both(&parked, &dying);
        let again = start(&continuation, Resume::decided(decisions.to_vec()), &driver, open.clone());
        let was_used = again.as_ref().is_err_and(|error| error.kind == ResumeErrorKind::Consumed);
        let again = again.unwrap_or(open);
        let end = end(driver.run(again));
        for (call, times) in at_most {
            let runs = driver.outside().ran.get(&CallId::from(*call)).map_or(0, Vec::len);
            assert!(runs <= *times, "after effect {n} #{call} ran {runs} times");
            assert!(
                runs == *times
                    || was_used
                    || results(&driver).iter().any(|said| said.contains("may have taken effect")),
                "after effect {n} #{call} ran {runs} times and nothing says why: {:?}",
                results(&driver)
            );
        }
        crate::laws::check_calls_and_results(
            driver.machine().log().iter(),
            end.reason() == StopReason::ApprovalRequired,
        );
    }
}

/// What both dead processes left: the journal of the second begins with the messages of the first, and
/// knows nothing of calls that had begun in it.
fn reopen_both(parked: &Driver, dying: &Driver) -> (Driver, Start) {
    let mut open = parked.journal().reopen().open_calls;
    let durable = dying.journal().reopen();
    for call in durable.open_calls {
        open.retain(|known| known.call != call.call);
        open.push(call);
    }
    let answered = |call: &CallId| {
        let journal: &Journal = dying.journal();
        journal.messages().any(|m| m.as_tool_result().is_some_and(|result| result.tool_call_id == *call))
    };
    open.retain(|known| !answered(&known.call));
    let log = durable.messages.into_iter().collect();
    (driver(dying.outside().clone(), log), Start::resume().with_open_calls(open))
}

#[test]
fn law_5_an_approved_call_runs_at_most_once_whenever_the_process_dies() {
    check_crashes(&one(), &[CallDecision::granted("c1")], &[("c1", 1)]);
    check_crashes(&one(), &[CallDecision::denied("c1", "no")], &[("c1", 0)]);
    let three = Shop::new(&[("c1", "pay"), ("c2", "look"), ("c3", "pay")]);
    let both = [CallDecision::granted("c1"), CallDecision::granted("c3")];
    check_crashes(&three, &both, &[("c1", 1), ("c2", 1), ("c3", 1)]);
}

fn verdict() -> impl Strategy<Value = GateVerdict> {
    prop_oneof![
        3 => Just(GateVerdict::Allow),
        1 => (0..3u32).prop_map(|n| GateVerdict::Rewrite(json(&format!(r#"{{"cents":{n}}}"#)))),
        1 => Just(GateVerdict::Hold { reason: "late".into() }),
        1 => Just(GateVerdict::Deny { message: "no".into() }),
        1 => Just(GateVerdict::Halt { message: "no".into(), reason: "never".into() }),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        3 => Just(Decision::Granted),
        1 => Just(Decision::Denied { reason: "no".into() }),
        1 => Just(Decision::Later),
        1 => (0..3u32).prop_map(|n| Decision::Edited(json(&format!(r#"{{"cents":{n}}}"#)))),
    ]
}

proptest! {
    /// Whatever gates and people answer, and however often work is taken up again: no call runs that was
    /// refused, none that was not decided, and none twice.
    #[test]
    fn no_refused_call_runs_and_none_twice(
        names in prop::collection::vec(prop_oneof![Just("pay"), Just("look")], 1..4),
        rounds in prop::collection::vec((prop::collection::vec(verdict(), 4), prop::collection::vec(decision(), 4)), 1..4),
    ) {
        let ids = ["c0", "c1", "c2", "c3"];
        let calls: Vec<_> = names.iter().enumerate().map(|(at, name)| (ids[at], *name)).collect();
        let say = |shop: &mut Shop, verdicts: &[GateVerdict]| {
            shop.verdicts = ids.iter().map(|id| CallId::from(*id)).zip(verdicts.iter().cloned()).collect();
        };
        let mut shop = Shop::new(&calls);
        say(&mut shop, &rounds[0].0);
        let mut at = driver(shop, Transcript::default());
        let mut ended = end(at.run(Start::prompt(Message::user("go"))));
        let mut denied: Vec<CallId> = Vec::new();
        for (verdicts, decisions) in &rounds {
            let Some(continuation) = ended.continuation.clone() else { break };
            let decided: Vec<_> = continuation.pending.iter().zip(decisions)
                .map(|(call, decision)| CallDecision::new(call.call_id.clone(), decision.clone()))
                .collect();
            denied.extend(decided.iter()
                .filter(|decided| matches!(decided.decision, Decision::Denied { .. }))
                .map(|decided| decided.call.clone()));
            let before = at.outside().ran.clone();
            let (mut next, open) = reopen(&at, |shop| say(shop, verdicts));
            let start = start(&continuation, Resume::decided(decided.clone()), &next, open).expect("it fits");
            ended = end(next.run(start));
            for decided in &decided {
                let ran = next.outside().ran.contains_key(&decided.call);
                let kept = matches!(decided.decision, Decision::Denied { .. } | Decision::Later);
                prop_assert!(!(ran && kept), "{decided:?}");
                let gate = verdicts[ids.iter().position(|id| decided.call == *id).expect("an id")].clone();
                let refuses = matches!(gate, GateVerdict::Deny { .. } | GateVerdict::Halt { .. });
                prop_assert!(!(ran && refuses), "{decided:?} {gate:?}");
            }
            for call in &denied {
                prop_assert!(!next.outside().ran.contains_key(call), "{call} was denied");
                prop_assert!(ended.continuation.iter().all(|made| made.pending.iter().all(|at| at.call_id != *call)));
            }
            prop_assert!(before.keys().all(|call| next.outside().ran[call].len() == 1));
            at = next;
        }
        prop_assert!(at.outside().ran.values().all(|runs| runs.len() == 1), "{:?}", at.outside().ran);
        let parked = ended.reason() == StopReason::ApprovalRequired;
        crate::laws::check_calls_and_results(at.machine().log().iter(), parked);
    }
}

/// Continuations of each version stay readable for ever.
#[test]
fn the_golden_continuations_are_read_and_written_back() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/continuations/v1");
    for name in ["approval", "approval_by_purpose", "clarification", "deferred"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("a golden file");
        let read: Continuation = json(&text).to().unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(Json::of(&read).expect("JSON"), json(&text), "{name}");
    }
}

#[test]
fn a_newer_continuation_is_refused() {
    let (_, continuation) = park(one());
    let newer = Json::of(&continuation).expect("JSON").text().replace(r#""version":1"#, r#""version":2"#);
    let fault = json(&newer).to::<Continuation>().expect_err("it is newer").to_string();
    assert!(fault.contains("continuation version 2 is not supported"), "{fault}");
}

#[test]
fn the_form_of_a_continuation_is_that_of_the_golden_file() {
    let (_, continuation) = park(one());
    let path = "../../fixtures/continuations/v1/approval_by_purpose.json";
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let golden = std::fs::read_to_string(golden).expect("a golden file");
    let written = Json::of(&continuation).expect("JSON");
    assert_eq!(written, json(&golden), "{written}");
}

#[test]
fn what_resumes_survives_json_with_exact_numbers() {
    let mut answer = UserMessage::text("berth 4");
    answer.metadata = Some(json(r#"{"n":1.50}"#));
    let edited = CallDecision::edited("c1", json(r#"{"cents":1.50}"#));
    for resume in [
        Resume::decided([edited]),
        Resume::Clarification { answer: Box::new(answer.into()) },
        Resume::deferred(),
    ] {
        let text = serde_json::to_string(&resume).unwrap();
        assert_eq!(serde_json::from_str::<Resume>(&text).unwrap(), resume, "{text}");
    }
    let error = serde_json::from_str::<Resume>(r#"{"kind":"approval"}"#).unwrap_err();
    assert_eq!(error.to_string(), "missing field `decisions`");
}
