//! Figures of a run.

use harness_core::Millis;
use maud::{Markup, html};

use crate::inspect::write::SafeText;
use crate::run_record::RunRecord;

/// Figures in boxes.
pub(super) fn facts(record: &RunRecord) -> Markup {
    html! {
        div.facts { @for (name, value) in &all(record) { div.fact { b { (SafeText(value)) } span { (name) } } } }
    }
}

/// Figures by name.
pub(super) fn all(record: &RunRecord) -> [(&'static str, String); 8] {
    let usage = &record.usage;
    let count = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), grouped);
    [
        ("duration", Millis(record.elapsed_ms).to_string()),
        ("model calls", usage.model_calls.to_string()),
        ("tool calls", usage.tool_calls.to_string()),
        ("tokens in", count(usage.input_tokens)),
        ("tokens out", count(usage.output_tokens)),
        ("cost", usage.cost.map_or_else(|| "–".to_owned(), |cost| cost.to_string())),
        ("last agent", record.agent_name.to_string()),
        ("last model", record.model.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string)),
    ]
}

/// Formats a number with thin spaces between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}
