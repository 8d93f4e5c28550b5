//! Progress of turns.

use std::collections::{BTreeSet, VecDeque};

use harness_core::Json;
use harness_core::canonical::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::contract::Coverage;
use crate::work::{ItemId, ItemStatus, WorkItem};

/// Characters at the start and the end of an answer that count for its shape.
const HEAD: usize = 200;
const TAIL: usize = 100;
/// Prefix of the fact that the status of an item changed.
const TRANSITION: &str = "transition ";

/// Fingerprint of a turn, equal for turns without progress.
///
/// It consists of facts that change only with progress: coverage, status and artifacts of work items, calls with their
/// results, and the shape of the answer. Counters and times are not part of it, because they change in every turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(BTreeSet<String>);

impl Fingerprint {
    /// Creates an empty fingerprint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fact of the application.
    #[must_use]
    pub fn fact(mut self, name: &str, value: &str) -> Self {
        self.0.insert(format!("fact {name} {value}"));
        self
    }

    /// Adds the coverage of a contract.
    #[must_use]
    pub fn coverage(mut self, coverage: &Coverage) -> Self {
        let entries = coverage.coverage.iter();
        self.0.extend(entries.map(|(id, entry)| format!("requirement {id} {}", entry.status.as_str())));
        self
    }

    /// Adds a call with its result. A repeated call with the same result adds nothing.
    #[must_use]
    pub(crate) fn call(mut self, tool: &str, arguments: &Json, result: &str) -> Self {
        self.0.insert(format!("call {tool} {} {}", digest(arguments.text()), digest(result)));
        self
    }

    /// Adds the shape of the answer: start, end, approximate length, and whether it called tools.
    #[must_use]
    pub(crate) fn answer(mut self, text: &str, has_calls: bool) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let length = text.chars().count();
        let head: String = text.chars().take(HEAD).collect();
        let tail: String = text.chars().skip(length.saturating_sub(TAIL)).collect();
        let size = match length {
            0..100 => "short",
            100..500 => "medium",
            _ => "long",
        };
        self.0.insert(format!("answer {size} {has_calls} {} {}", digest(&head), digest(&tail)));
        self
    }

    /// Adds a work item: status and artifact.
    #[must_use]
    pub(super) fn item(mut self, item: &WorkItem) -> Self {
        let (status, held) = (item.status.as_str(), digest(&item.artifact));
        self.0.insert(format!("item {} {status} {held} {}", item.id, item.requires_revision));
        self
    }

    /// Adds a change of an item's status. It counts as progress even if the item had this status before.
    #[must_use]
    pub(crate) fn transition(mut self, item: &ItemId, from: ItemStatus, to: ItemStatus) -> Self {
        self.0.insert(format!("{TRANSITION}{item} {} {}", from.as_str(), to.as_str()));
        self
    }

    /// Whether it contains facts that always count as progress.
    fn has_transition(&self) -> bool {
        self.0.iter().any(|fact| fact.starts_with(TRANSITION))
    }

    /// Digest of the facts, independent of their order.
    pub(crate) fn short(&self) -> String {
        let all: Vec<&str> = self.0.iter().map(String::as_str).collect();
        digest(&all.join("\n"))
    }
}

/// The first sixteen hexadecimal digits of the SHA-256 of a text.
fn digest(text: &str) -> String {
    let mut digest = sha256_hex(text);
    digest.truncate(16);
    digest
}

/// Progress after the newest turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Whether the number of equal turns has reached the threshold.
    pub stalled: bool,
    /// Consecutive equal turns, including the newest; counted up to twice the threshold.
    pub same: usize,
}

/// Maximum number of known facts.
const FACTS: usize = 1_024;

/// Tracks the fingerprints of turns. A turn without new facts counts as equal to the one before, so alternating between
/// two states is not progress. A status change of a work item always is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressTracker {
    threshold: usize,
    latest: VecDeque<String>,
    /// Facts of earlier turns, as digests.
    #[serde(default)]
    known: BTreeSet<String>,
}

impl Default for ProgressTracker {
    fn default() -> Self {
        Self::new(3)
    }
}

impl ProgressTracker {
    /// Creates a tracker that stalls after `threshold` consecutive equal turns; at least 2, by default 3.
    pub fn new(threshold: usize) -> Self {
        Self { threshold: threshold.max(2), latest: VecDeque::new(), known: BTreeSet::new() }
    }

    /// Records a turn.
    pub fn note(&mut self, turn: &Fingerprint) -> Progress {
        let kept = self.threshold.saturating_mul(2);
        if self.latest.len() >= kept {
            self.latest.pop_front();
        }
        let mut is_new = turn.has_transition();
        for fact in turn.0.iter().map(|fact| digest(fact)) {
            is_new |= self.known.insert(fact);
        }
        while self.known.len() > FACTS {
            self.known.pop_first();
        }
        let last = self.latest.back().filter(|_| !is_new).cloned();
        self.latest.push_back(last.unwrap_or_else(|| turn.short()));
        self.progress()
    }

    /// Whether a turn with this fingerprint would stall the run.
    pub(super) fn would_stall(&self, turn: &Fingerprint) -> bool {
        let is_new = turn.has_transition() || turn.0.iter().any(|fact| !self.known.contains(&digest(fact)));
        !is_new && !self.latest.is_empty() && self.progress().same + 1 >= self.threshold
    }

    /// Progress after the newest turn.
    pub(crate) fn progress(&self) -> Progress {
        let newest = self.latest.back();
        let same = self.latest.iter().rev().take_while(|turn| Some(*turn) == newest).count();
        Progress { stalled: same >= self.threshold, same }
    }

    /// Number of recorded turns, at most twice the threshold.
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Whether no turn was recorded.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{ItemStatus, NewItem, WorkLedger, WorkLimits};
    use harness_core::Time;

    /// How many equal turns in a row there are after each turn.
    #[track_caller]
    fn check(turns: &[Fingerprint], expected: &[usize]) {
        let mut tracker = ProgressTracker::new(3);
        let same: Vec<_> = turns.iter().map(|turn| tracker.note(turn).same).collect();
        assert_eq!(same, expected);
    }

    fn call(result: &str) -> Fingerprint {
        Fingerprint::new().call("read", &Json::empty_object(), result)
    }

    #[test]
    fn equal_turns_stall_at_exactly_the_threshold() {
        let mut tracker = ProgressTracker::new(3);
        let stalled: Vec<_> = (0..8).map(|_| tracker.note(&call("x")).stalled).collect();
        assert_eq!(stalled, [false, false, true, true, true, true, true, true]);
        assert_eq!(tracker.len(), 6);
        assert_eq!(ProgressTracker::new(0), ProgressTracker::new(2), "one turn is no streak");
    }

    #[test]
    fn a_new_result_is_progress_and_the_same_one_is_none() {
        check(&[call("a"), call("a"), call("b"), call("b")], &[1, 2, 1, 2]);
        check(&[call("a"), call("a").call("read", &Json::empty_object(), "a")], &[1, 2]);
    }

    #[test]
    fn a_change_of_an_item_or_of_its_artifact_is_progress() {
        let (mut ledger, limits) = (WorkLedger::default(), WorkLimits::default());
        let item = NewItem { title: "A".to_owned(), ..NewItem::default() };
        let id = ledger.add(item, Time(0), &limits).expect("fits");
        let seen = |ledger: &WorkLedger| ledger.items().iter().fold(Fingerprint::new(), Fingerprint::item);
        let mut turns = vec![seen(&ledger)];
        ledger.update(&id, ItemStatus::InProgress, "", Time(1), &limits).expect("there");
        turns.push(seen(&ledger));
        ledger.store(&id, "text", None, Time(2), &limits).expect("fits");
        turns.push(seen(&ledger));
        ledger.update(&id, ItemStatus::InProgress, "", Time(3), &limits).expect("there");
        turns.push(seen(&ledger));
        check(&turns, &[1, 1, 1, 2]);
    }

    #[test]
    fn the_shape_of_an_answer_counts_and_not_its_spaces() {
        let answer = |text: &str| Fingerprint::new().answer(text, false);
        check(&[answer("I am  stuck."), answer("I am\nstuck."), answer("Done.")], &[1, 2, 1]);
        let long = |middle: &str| answer(&format!("{}{middle}{}", "a".repeat(200), "z".repeat(400)));
        check(&[long("x"), long("y")], &[1, 2]);
    }

    #[test]
    fn going_to_and_fro_is_no_progress() {
        check(&[call("a"), call("b"), call("a"), call("b"), call("c")], &[1, 1, 2, 3, 1]);
    }

    #[test]
    fn the_order_of_facts_does_not_count() {
        let (a, b) = (Fingerprint::new().fact("x", "1"), Fingerprint::new().fact("y", "2"));
        assert_eq!(a.fact("y", "2").short(), b.fact("x", "1").short());
    }
}
