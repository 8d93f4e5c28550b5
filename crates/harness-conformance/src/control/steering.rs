//! Progress and just-in-time instructions.

use harness_core::contract::{Coverage, CoverageStatus, TaskContract};
use harness_core::control::{Fingerprint, Instructions, ProgressTracker, Standing};
use serde_json::{Value, json};

use super::super::turn::convert::{at, list};

/// Events that the source writes in every turn, whatever happens in it.
const OWN_EVENTS: u64 = 2;

pub(super) fn stall(input: &Value) -> Value {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
    let threshold = number(input, "threshold").and_then(|n| usize::try_from(n).ok()).unwrap_or(3);
    let mut tracker = ProgressTracker::new(threshold);
    let (mut length, mut grown) = (None, 0);
    let turns: Vec<Value> = list(input, "turns")
        .iter()
        .map(|turn| {
            let now = number(turn, "transcript_length");
            if let (Some(before), Some(now)) = (length, now) {
                // The transcript of the source grows in idle turns, too.
                let added: u64 = u64::abs_diff(now, before);
                grown += if added >= OWN_EVENTS { added - OWN_EVENTS } else { added };
            }
            length = now;
            let progress = tracker.note(&fingerprint(turn, grown));
            json!({ "stalled": progress.stalled, "duration": progress.same, "history": tracker.len() })
        })
        .collect();
    json!({ "turns": turns })
}

fn fingerprint(turn: &Value, grown: u64) -> Fingerprint {
    let mut coverage = Coverage::of(&TaskContract::new("c", "g"));
    let mut fingerprint = Fingerprint::new().fact("events", &grown.to_string());
    for artifact in list(turn, "artifacts").iter().filter_map(Value::as_str) {
        fingerprint = fingerprint.fact("artifact", artifact);
    }
    for (item, status) in at(turn, "work_item_statuses").as_object().into_iter().flatten() {
        fingerprint = fingerprint.fact(item, status.as_str().unwrap_or_default());
    }
    for (id, status) in at(turn, "coverage").as_object().into_iter().flatten() {
        coverage.coverage.entry(id.clone()).or_default().status =
            serde_json::from_value(status.clone()).unwrap_or(CoverageStatus::Unmet);
    }
    fingerprint.coverage(&coverage)
}

pub(super) fn jit(input: &Value) -> Value {
    let mut instructions = Instructions::with_files();
    let fired: Vec<Vec<String>> = list(input, "turns")
        .iter()
        .map(|turn| {
            let number = |key: &str, default: u64| turn.get(key).and_then(Value::as_u64).unwrap_or(default);
            let small = |key: &str, default| u32::try_from(number(key, default)).unwrap_or(u32::MAX);
            let count = |key: &str| usize::try_from(number(key, 0)).unwrap_or(usize::MAX);
            let calls = at(turn, "tool_usage").as_object().into_iter().flatten();
            let now = Standing {
                turn: small("turn", 1),
                max_turns: small("max_turns", 50),
                calls: calls.map(|(tool, n)| (tool.as_str().into(), n.as_u64().unwrap_or(0))).collect(),
                items_complete: count("work_items_complete"),
                items: count("work_items_total"),
                compactions: number("compaction_count", 0),
            };
            instructions.due(&now, None).into_iter().map(|due| due.id.clone()).collect()
        })
        .collect();
    json!({ "fired": fired })
}

/// The fingerprints themselves are the product's own.
pub(super) fn without_values(wanted: &mut Value) {
    for turn in wanted.get_mut("turns").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(turn) = turn.as_object_mut() {
            turn.remove("fingerprint");
        }
    }
}
