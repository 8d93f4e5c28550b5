//! The README's example, through the release program: prints an answer and ends well, and with
//! `--json` every line is an object, the last one the result.

use serde_json::{Map, Value};

use crate::support::{harness, root};
use crate::{EXAMPLE, ran};

const QUESTION: &str = "Where is my order 1042?";

#[test]
fn the_example_is_answered() {
    let text = ran(harness(&root(), &["run", EXAMPLE, QUESTION]));
    assert_ne!(text.trim(), "");
    let lines = ran(harness(&root(), &["run", EXAMPLE, QUESTION, "--json"]));
    let lines: Vec<Map<String, Value>> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&"result".into(), &"completed".into()), "{last:?}");
}
