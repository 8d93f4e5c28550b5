//! The laws are tried with every setting: none has one value in all samples.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use crate::run_case::run_case;
use crate::world::{port_set, spec};

/// The settings that all samples share.
fn never_varied<T: serde::Serialize>(samples: impl Strategy<Value = T>) -> Vec<String> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for _ in 0..200 {
        let sample = samples.new_tree(&mut runner).expect("a sample").current();
        let settings: serde_json::Map<String, serde_json::Value> =
            serde_json::from_value(serde_json::to_value(sample).expect("JSON")).expect("settings");
        for (name, value) in settings {
            seen.entry(name).or_default().insert(value.to_string());
        }
    }
    seen.into_iter().filter(|(_, values)| values.len() < 2).map(|(name, _)| name).collect()
}

#[test]
fn every_setting_of_turns_and_runs_is_varied() {
    assert_eq!(never_varied(spec()), [""; 0]);
    // A scripted driver has a session, and listens; `law_7_without_listeners_a_turn_does_the_same` does not.
    assert_eq!(never_varied(port_set()), ["listeners", "session"]);
    assert_eq!(never_varied(run_case().prop_map(|case| case.spec)), [""; 0]);
    let under_control = run_case().prop_map(|case| BTreeMap::from([("control", case.control.is_some())]));
    assert_eq!(never_varied(under_control), [""; 0]);
}
