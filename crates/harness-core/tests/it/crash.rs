//! Laws 4 and 5: the process dies after any effect, and a new one goes on from what is durable.

use std::sync::Arc;

use harness_core::machine::{Machine, Phase, Record, Start, ViewState};
use harness_core::message::Message;
use harness_core::testing::{Journal, Ran, ScriptedDriver};
use harness_core::tool::RetryClass;
use harness_core::transcript::Transcript;
use proptest::prelude::*;

use crate::laws::{cases, check_calls_and_results};
use crate::run_case::{RunCase, run_case};
use crate::world::{Case, World, begin, case, finish, told};

/// The next process over what the dead one left.
fn reopen<P: Phase>(
    dead: &ScriptedDriver<P, World>,
    new: impl Fn(Transcript) -> Machine<P>,
) -> (ScriptedDriver<P, World>, Start) {
    let durable = dead.journal().reopen();
    let start = if durable.messages.is_empty() { begin() } else { Start::resume() };
    let machine = new(durable.messages.into_iter().collect())
        .with_view(ViewState { plan: durable.plan.clone(), measured: None });
    let driver = ScriptedDriver::new(machine, dead.outside().next_process(), dead.now());
    (driver, start.with_open_calls(durable.open_calls))
}

/// Every message that was ever stored: a compaction takes none of them away.
fn stored(journal: &Journal) -> Vec<Arc<Message>> {
    let messages = |record: &Record| match record {
        Record::Messages { messages, .. } => messages.clone(),
        Record::CallStarted { .. }
        | Record::CallFinished { .. }
        | Record::Compaction { .. }
        | Record::TurnEnd
        | Record::RunEnd(_) => Vec::new(),
    };
    journal.records().iter().flat_map(messages).collect()
}

/// Runs the case, dies after the n-th effect, goes on, and checks what must hold then. Whether it died.
fn crash_and_go_on<P: Phase>(
    case: &Case,
    n: u64,
    driver: ScriptedDriver<P, World>,
    new: impl Fn(Transcript) -> Machine<P>,
) -> bool {
    let mut dead = driver.crash_after(n);
    if case.drive(&mut dead, begin()) != Ran::Crashed {
        return false;
    }
    let before: Vec<_> = dead.journal().messages().cloned().collect();
    let (mut driver, start) = reopen(&dead, new);
    let ran = driver.run(start);
    finish(&mut driver, ran);

    let after = stored(driver.journal());
    assert_eq!(after[..before.len()], before[..], "what was durable changed");
    let end = driver.machine().end().expect("an end");
    let parked = end.continuation.as_ref().is_some_and(|c| !c.pending.is_empty());
    check_calls_and_results(after.iter(), parked);
    check_calls_and_results(driver.journal().messages(), parked);
    if !case.repeated_ids && case.spec.retry.max_retries == 0 {
        check_executions(&dead, &driver);
    }
    true
}

fn turn_crashes(case: &Case, n: u64) -> bool {
    crash_and_go_on(case, n, case.driver(), |log| case.machine_over(log))
}

fn run_crashes(case: &RunCase, n: u64) -> bool {
    crash_and_go_on(&case.turn, n, case.driver(), |log| case.machine_over(log))
}

fn check_executions<P: Phase>(dead: &ScriptedDriver<P, World>, driver: &ScriptedDriver<P, World>) {
    for (call, runs) in &driver.outside().executions {
        let at_most = if runs.contains(&RetryClass::Unsafe) { 1 } else { 2 };
        assert!(
            runs.len() <= at_most,
            "#{call} ran {} times:\n{}--\n{}",
            runs.len(),
            told(dead),
            told(driver)
        );
    }
}

proptest! {
    #![proptest_config(cases(250))]

    /// An execution that failed and said that trying again helps may be tried again, whatever its class;
    /// so the scenarios run without retries where it is counted.
    #[test]
    fn law_5_no_unsafe_call_runs_twice_whenever_the_process_dies(mut case in case()) {
        case.repeated_ids = false;
        case.spec.retry.max_retries = 0;
        for n in 1.. {
            if !turn_crashes(&case, n) {
                break;
            }
        }
    }

    #[test]
    fn law_4_whatever_was_durable_stays_and_every_call_is_answered(case in case()) {
        for n in (1..).step_by(3) {
            if !turn_crashes(&case, n) {
                break;
            }
        }
    }

    #[test]
    fn law_5_no_unsafe_call_runs_twice_whenever_the_process_of_a_run_dies(mut case in run_case()) {
        case.turn.repeated_ids = false;
        case.turn.spec.retry.max_retries = 0;
        case.spec.turn.retry.max_retries = 0;
        for n in 1.. {
            if !run_crashes(&case, n) {
                break;
            }
        }
    }
}
