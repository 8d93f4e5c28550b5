//! Every crash of a run, found by the test kit.

use std::path::Path;
use std::sync::Arc;

use harness::core::Json;
use harness::core::message::ToolCall;
use harness::core::tool::RetryClass;
use harness::prelude::*;
use harness::session::checkpoint::MemoryCheckpoints;
use harness::session::{FileSession, MemorySession, OpenOptions};
use harness::testing::{CrashPoints, Scenario, ScriptedModel, every_crash};
use parking_lot::Mutex;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Stores, and the payments that were made.
#[derive(Clone, Default)]
struct Bank {
    session: MemorySession,
    checkpoints: MemoryCheckpoints,
    payments: Arc<Mutex<Vec<String>>>,
}

/// Pays; with `ledger` a payment of a known key is not made again.
fn payment(bank: &Bank, class: RetryClass, keeps_keys: bool) -> impl harness::core::tool::Tool + use<> {
    let payments = Arc::clone(&bank.payments);
    let pay = tool_fn("pay", "Pays", move |_: Nothing, cx: ToolCx| {
        let payments = Arc::clone(&payments);
        async move {
            let mut payments = payments.lock();
            let key = cx.idempotency_key();
            if !keeps_keys || !payments.contains(&key) {
                payments.push(key);
            }
            Ok::<_, std::io::Error>("paid")
        }
    });
    match class {
        RetryClass::Idempotent => pay.idempotent(),
        RetryClass::Pure => pay.pure(),
        RetryClass::Unsafe => pay,
    }
}

fn model() -> ScriptedModel {
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, Json::empty_object());
    let steps = [
        AssistantMessage::calls([call("c1", "pay")]),
        AssistantMessage::text("It is paid, or the bank knows."),
    ];
    ScriptedModel::new(steps).repeatable()
}

fn scenario(class: RetryClass, keeps_keys: bool) -> Scenario<Bank> {
    let process = move |bank: &Bank, _: &CrashPoints| {
        Harness::new(model())
            .tool(payment(bank, class, keeps_keys))
            .session(bank.session.clone())
            .checkpoints(bank.checkpoints.clone())
    };
    Scenario::new("Pay the bill.", Bank::default, process).check(|bank, outcome| {
        let made = bank.payments.lock().len();
        assert!(made <= 1, "{made} payments were made");
        let last = outcome.messages.last().map(|message| message.joined_text());
        assert_eq!(last.as_deref(), Some("It is paid, or the bank knows."));
    })
}

#[test]
fn law_5_an_unsafe_payment_is_made_at_most_once_whenever_the_process_dies() {
    let points = every_crash(&scenario(RetryClass::Unsafe, false)).unwrap();
    insta::assert_snapshot!(points.join("\n"));
    assert_eq!(every_crash(&scenario(RetryClass::Unsafe, false)), Ok(points), "equal runs have equal points");
}

#[test]
fn law_5_an_idempotent_payment_that_keeps_keys_is_made_once() {
    let points = every_crash(&scenario(RetryClass::Idempotent, true)).unwrap();
    assert!(points.contains(&"after tool call #c1 pay".to_owned()), "{points:?}");
}

#[track_caller]
fn check_failure<W>(scenario: &Scenario<W>, expected: &str) {
    let failure = every_crash(scenario).unwrap_err();
    assert_eq!(failure.to_string(), expected);
    assert_eq!(format!("{failure:?}"), expected, "`unwrap` shows the text");
}

#[test]
fn a_tool_that_is_only_declared_idempotent_is_found() {
    let expected = "crash at point 11 (after tool call #c1 pay): check failed: 2 payments were made\n\
        note: `pay` (#c1) ran again after the crash, because its tool is `idempotent`: a repeated call with the same \
        idempotency key must have its effects once; if the tool cannot ensure that, remove `.idempotent()`";
    check_failure(&scenario(RetryClass::Idempotent, false), expected);
}

#[test]
fn too_many_points_are_an_error() {
    let expected = "run without a crash: 21 crash points exceed the limit of 3\n\
        hint: raise it with `Scenario::max_points`";
    check_failure(&scenario(RetryClass::Unsafe, true).max_points(3), expected);
}

#[test]
fn a_scenario_without_a_session_is_an_error() {
    let scenario = Scenario::new("Hi", || (), |(), _| Harness::new(model()));
    check_failure(&scenario, "run without a crash: no session\nhint: set one with `Builder::session`");
}

#[test]
fn a_scenario_that_differs_each_time_is_an_error() {
    let runs = Arc::new(Mutex::new(0));
    let world = move || {
        *runs.lock() += 1;
        (MemorySession::new(), *runs.lock())
    };
    let process = |(session, run): &(MemorySession, u32), points: &CrashPoints| {
        let (points, run) = (points.clone(), *run);
        let pay = tool_fn("pay", "Pays", move |_: Nothing, _| {
            let points = points.clone();
            async move {
                points.pass(format!("run {run}")).await;
                Ok::<_, std::io::Error>("paid")
            }
        });
        Harness::new(model()).tool(pay).session(session.clone())
    };
    let failure = every_crash(&Scenario::new("Pay.", world, process)).unwrap_err();
    assert!(failure.message.starts_with("the scenario is not deterministic: "), "{failure}");
}

/// A directory with the session, and a file that each call makes longer.
fn in_files(directory: &tempfile::TempDir, _: &CrashPoints) -> harness::Builder {
    let log = directory.path().join("payments");
    let pay = tool_fn("pay", "Pays", move |_: Nothing, _| {
        let log = log.clone();
        async move {
            let paid = std::fs::read_to_string(&log).unwrap_or_default();
            std::fs::write(&log, paid + "paid\n").map(|()| "paid")
        }
    });
    let session = FileSession::open(directory.path().join("s.jsonl"), OpenOptions::default()).unwrap();
    Harness::new(model()).tool(pay).session(session)
}

fn lines(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("payments")).unwrap_or_default().lines().count()
}

#[test]
fn law_5_a_payment_to_a_file_is_made_at_most_once_over_a_session_file() {
    let scenario = Scenario::new("Pay the bill.", || tempfile::tempdir().unwrap(), in_files)
        .check(|directory, _| assert!(lines(directory.path()) <= 1));
    assert!(every_crash(&scenario).unwrap().len() > 10);
}
