//! Faults of the control plane that were found in use, each under its number.

use harness_control::contract::{Coverage, CoverageStatus, EvidenceIndex, Facts, TaskContract};
use harness_control::work::{ItemId, ItemStatus, NewItem, WorkLedger, WorkLimits};
use harness_control::{ControlEvent, StallSpec, WorkSpec};
use harness_core::message::AssistantMessage;
use harness_core::tool::ToolOutcome;
use harness_core::{Json, Time};

use crate::controlled::{Played, Scene, calls, done, impatient, says};

/// A contract whose required output holds by itself and whose optional one is a missing file.
fn contract() -> TaskContract {
    let contract = serde_json::json!({ "id": "c", "goal": "g", "required_outputs": [
        { "id": "R1", "description": "said", "predicate": { "type": "always_true" } },
        { "id": "R2", "description": "a file", "optional": true,
          "predicate": { "type": "file_exists", "args": { "path": "extra.md" } } },
    ] });
    serde_json::from_value(contract).expect("a contract")
}

#[test]
fn fault_39_percentage_counts_required_outputs() {
    let contract = contract();
    let mut coverage = Coverage::of(&contract);
    assert!((coverage.percent(&contract) - 0.0).abs() < f64::EPSILON);
    let verification = contract.verify(&mut coverage, &Facts::new(&EvidenceIndex::default()));
    assert!(verification.satisfied);
    assert!((coverage.percent(&contract) - 100.0).abs() < f64::EPSILON, "a satisfied contract is complete");
}

#[test]
fn fault_39_partially_met_survives_a_failed_check() {
    let contract = contract();
    let mut coverage = Coverage::of(&contract);
    assert!(coverage.meet_partially("R2", "a draft exists"));
    let verification = contract.verify(&mut coverage, &Facts::new(&EvidenceIndex::default()));
    assert!(!verification.results[1].1.success, "partially met counts as unmet");
    assert_eq!(coverage.status("R2"), CoverageStatus::PartiallyMet);
    assert!(!coverage.meet_partially("R3", ""), "the contract has no such requirement");
}

/// A ledger and the tool results that tell its changes.
#[derive(Default)]
struct Work {
    ledger: WorkLedger,
    results: Vec<ToolOutcome>,
}

impl Work {
    fn change(&mut self, change: impl FnOnce(&mut WorkLedger, &WorkLimits)) {
        let before = self.ledger.clone();
        change(&mut self.ledger, &WorkLimits::default());
        let mut outcome = ToolOutcome::text("noted");
        let told = serde_json::json!({ "ledger": self.ledger.delta_since(&before) });
        outcome.structured = Json::of(&told).ok();
        self.results.push(outcome);
    }

    fn add(&mut self, title: &str) {
        let item = NewItem { title: title.to_owned(), ..NewItem::default() };
        self.change(|ledger, limits| drop(ledger.add(item, Time(0), limits).expect("fits")));
    }

    fn set(&mut self, id: &str, status: ItemStatus, notes: &str) {
        let id = ItemId::from(id);
        self.change(|ledger, limits| ledger.update(&id, status, notes, Time(0), limits).expect("exists"));
    }

    /// Plays a run whose model makes one change in each turn and claims to be done where `ends` says so.
    fn play(self, ends: &[bool], strict: bool) -> Played {
        let control = impatient().with_work(WorkSpec::default()).with_stall(StallSpec::after(2));
        let turn = |ends: &bool| -> Vec<AssistantMessage> {
            let change = calls(&[("work_item_update", "{}")]);
            if *ends { vec![change, done()] } else { vec![change, says("working")] }
        };
        let scene =
            Scene::new(control, ends.iter().flat_map(turn)).with_tool("work_item_update", self.results);
        if strict { scene.strict().play() } else { scene.play() }
    }
}

#[test]
fn fault_39_reopened_item_is_progress() {
    let mut work = Work::default();
    work.add("A");
    for _ in 0..3 {
        work.set("00000001", ItemStatus::Done, "");
        work.set("00000001", ItemStatus::Pending, "");
    }
    work.set("00000001", ItemStatus::Done, "");
    let played = work.play(&[false, false, false, false, false, false, false, true], false);
    assert_eq!(played.decisions().join(" "), "agent_working ".repeat(7) + "agent_done");
}

#[test]
fn fault_39_unchanged_item_stalls() {
    let mut work = Work::default();
    work.add("A");
    for _ in 0..3 {
        work.set("00000001", ItemStatus::InProgress, "");
    }
    let played = work.play(&[false; 4], false);
    assert_eq!(played.decisions(), ["agent_working", "agent_working", "stalled"]);
}

fn skipped_revision() -> Work {
    let mut work = Work::default();
    work.add("A");
    work.set("00000001", ItemStatus::Done, "");
    let flagged = ItemId::from("00000001");
    work.change(|ledger, limits| {
        drop(ledger.flag_revision(&flagged, "the sum is off", Time(0), limits).expect("exists"));
    });
    work.set("00000002", ItemStatus::Skipped, "");
    work
}

#[test]
fn fault_39_skipped_revision_needs_note_in_strict_mode() {
    let mut work = skipped_revision();
    work.set("00000002", ItemStatus::Skipped, "the sum was right");
    let played = work.play(&[false, false, false, true, true], true);
    assert_eq!(played.decisions()[3..], ["work_items_incomplete", "agent_done"]);
    assert_eq!(played.told("skipped without a note").last(), Some(&1));

    let interactive = skipped_revision().play(&[false, false, false, true], false);
    assert_eq!(interactive.decisions()[3..], ["agent_done"], "an interactive run accepts it");
}

#[test]
fn fault_39_deliverables_are_announced_when_they_change() {
    let (mut work, id) = (Work::default(), ItemId::from("00000001"));
    work.add("A");
    for artifact in ["a draft".to_owned(), "x".repeat(5_000)] {
        let role = harness_control::work::ItemRole::Deliverable;
        let id = &id;
        work.change(|ledger, limits| {
            let stored = ledger.store(id, &artifact, Some(role), Time(0), limits).expect("fits");
            assert_eq!(stored.removed_lines, 0);
        });
    }
    work.set("00000001", ItemStatus::Done, "");
    let played = work.play(&[false, false, false, true], false);
    let announced: Vec<_> = played
        .control_events()
        .into_iter()
        .filter_map(|event| match event {
            ControlEvent::DeliverablesUpdated { deliverables } => Some(deliverables),
            _ => None,
        })
        .map(|mut deliverables| deliverables.remove(0))
        .map(|one| (one.bytes, one.content, one.sha256.len()))
        .collect();
    let draft = (7, Some("a draft".to_owned()), 64);
    assert_eq!(announced.len(), 2, "once for each change: {announced:?}");
    assert!(announced.contains(&draft));
    assert!(announced.contains(&(5_000, None, 64)), "a large one is told by size and digest");
}
