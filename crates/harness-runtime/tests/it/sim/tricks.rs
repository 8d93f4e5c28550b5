//! Parts that break a law on purpose: a check that cannot fail proves nothing.

use super::play;
use super::world::World;

/// What a part does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trick {
    /// A session loses a message of a user, and says that it has it.
    LosesMessage,
    /// A session writes a message of a user twice.
    WritesTwice,
    /// A session loses the result of a call.
    LosesResult,
    /// A tool says that it may be run again, which it may not.
    ClaimsRepeatable,
    /// A session writes messages that come together in another order.
    Swaps,
    /// A session forgets its last message when it is loaded.
    LoadsShort,
    /// A session never ends what it writes.
    Hangs,
    /// Sessions stay open when nobody uses them any more.
    StaysOpen,
    /// A clock wakes far too late.
    Oversleeps,
    /// Runs are given other limits than they were promised.
    IsGenerous,
    /// A reader is told that it missed more than it did.
    Miscounts,
    /// A reader is not told of an event.
    SkipsEvent,
    /// A reader is told of another event than everybody else.
    TellsAnother,
}

/// How many times a trick could have been played before it is.
const PATIENCE: u64 = 3;

impl World {
    pub(super) fn plays(&self, trick: Trick) -> bool {
        self.trick == Some(trick)
    }

    /// Whether the trick is played now: once in each simulation.
    pub(super) fn strikes(&self, trick: Trick) -> bool {
        if !self.plays(trick) {
            return false;
        }
        let mut inner = self.lock();
        inner.chances += 1;
        inner.chances == PATIENCE
    }
}

/// Timelines that are tried.
const SEEDS: u64 = 10_000;

/// A timeline with a request after the time limit, which few have. It is tried first.
const LATE: u64 = 5_069;

/// Each of these laws is broken by a timeline with the trick.
#[track_caller]
fn check(trick: Trick, laws: &[&str]) {
    let mut unbroken = laws.to_vec();
    let mut told = Vec::new();
    let mut seeds = std::iter::once(LATE).chain(1..=SEEDS);
    while let Some(seed) = seeds.next().filter(|_| !unbroken.is_empty()) {
        let faults = play(seed, Some(trick)).faults();
        unbroken.retain(|law| !faults.iter().any(|fault| fault.contains(law)));
        told.extend(faults);
    }
    assert!(unbroken.is_empty(), "{trick:?} does not break {unbroken:?}, but: {told:#?}");
}

#[test]
fn a_message_that_is_lost_is_noticed() {
    check(Trick::LosesMessage, &["stands 0 times, not Once"]);
}

#[test]
fn a_message_that_is_written_twice_is_noticed() {
    check(Trick::WritesTwice, &["stands 2 times, not Once"]);
}

#[test]
fn a_result_that_is_lost_is_noticed() {
    check(Trick::LosesResult, &["law 1: "]);
}

#[test]
fn a_call_that_runs_twice_is_noticed() {
    check(Trick::ClaimsRepeatable, &["law 5: "]);
}

#[test]
fn messages_in_another_order_are_noticed() {
    check(Trick::Swaps, &[" came before <"]);
}

#[test]
fn a_history_that_comes_back_without_its_end_is_noticed() {
    check(Trick::LoadsShort, &["its session holds", "a request: "]);
}

#[test]
fn waiters_that_are_never_told_are_noticed() {
    check(Trick::Hangs, &["nothing happens any more; waiting"]);
}

#[test]
fn a_session_with_two_owners_is_noticed() {
    check(Trick::StaysOpen, &["is open twice"]);
}

#[test]
fn an_abort_beyond_the_grace_is_noticed() {
    check(Trick::Oversleeps, &["an abort took "]);
}

#[test]
fn limits_that_do_not_hold_are_noticed() {
    let laws = [
        "request 3 of a turn, at most 2",
        "call 2 of a turn, at most 1",
        " ms old, at most ",
        "a request after ",
    ];
    check(Trick::IsGenerous, &laws);
    check(Trick::Oversleeps, &[" ms old, at most "]);
}

#[test]
fn readers_that_are_told_something_else_are_noticed() {
    for trick in [Trick::Miscounts, Trick::SkipsEvent] {
        check(trick, &[" came in the place of "]);
    }
    check(Trick::TellsAnother, &["another was told "]);
}
