//! Progress and just-in-time instructions.

use std::collections::{BTreeMap, BTreeSet};

use harness_control::contract::{Coverage, CoverageStatus, TaskContract};
use harness_control::{Fingerprint, Instruction, ProgressTracker, RunFacts};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Done;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turns<T> {
    threshold: Option<usize>,
    turns: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ingredients {
    /// The length of a transcript is not progress.
    #[serde(rename = "transcript_length")]
    _length: Option<u64>,
    #[serde(default)]
    work_item_statuses: BTreeMap<String, String>,
    #[serde(default)]
    artifacts: Vec<String>,
    #[serde(default)]
    coverage: BTreeMap<String, CoverageStatus>,
}

pub(super) fn stall(input: Turns<Ingredients>) -> Done<Value> {
    let mut tracker = ProgressTracker::new(input.threshold.ok_or("there is no `threshold`")?);
    let turns = input.turns.into_iter().map(|turn| {
        let progress = tracker.note(&turn.fingerprint());
        json!({ "stalled": progress.stalled, "duration": progress.same, "history": tracker.len() })
    });
    Ok(json!({ "turns": turns.collect::<Vec<_>>() }))
}

impl Ingredients {
    fn fingerprint(self) -> Fingerprint {
        let mut coverage = Coverage::of(&TaskContract::new("c", "g"));
        let mut fingerprint = Fingerprint::new();
        for artifact in &self.artifacts {
            fingerprint = fingerprint.fact("artifact", artifact);
        }
        for (item, status) in &self.work_item_statuses {
            fingerprint = fingerprint.fact(item, status);
        }
        for (id, status) in self.coverage {
            coverage.coverage.entry(id).or_default().status = status;
        }
        fingerprint.coverage(&coverage)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Moment {
    turn: u32,
    max_turns: Option<u32>,
    #[serde(default)]
    tool_usage: BTreeMap<String, u64>,
    #[serde(default)]
    work_items_total: usize,
    #[serde(default)]
    work_items_complete: usize,
    #[serde(default)]
    compaction_count: u64,
}

/// Turns that a run has where the vector does not say it.
const MAX_TURNS: u32 = 50;

pub(super) fn jit(input: Turns<Moment>) -> Done<Value> {
    if input.threshold.is_some() {
        return Err("unknown word `threshold`".to_owned());
    }
    let (list, mut sent) = (Instruction::for_files(), BTreeSet::new());
    let fired = input.turns.into_iter().map(|turn| {
        let now = RunFacts {
            turn: turn.turn,
            max_turns: turn.max_turns.unwrap_or(MAX_TURNS),
            calls: turn.tool_usage.iter().map(|(tool, n)| (tool.as_str().into(), *n)).collect(),
            items_complete: turn.work_items_complete,
            items: turn.work_items_total,
            compactions: turn.compaction_count,
        };
        let due = Instruction::due(&list, &mut sent, &now, |_| true);
        due.into_iter().map(|due| due.id.clone()).collect::<Vec<_>>()
    });
    Ok(json!({ "fired": fired.collect::<Vec<_>>() }))
}

/// The fingerprints themselves are the product's own.
pub(super) fn without_values(wanted: &mut Value, _: &mut Value) {
    for turn in wanted.get_mut("turns").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(turn) = turn.as_object_mut() {
            turn.remove("fingerprint");
        }
    }
}
