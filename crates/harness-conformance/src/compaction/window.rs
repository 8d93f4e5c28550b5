//! Vectors of kinds `grouping` and `group-window`: strategies over groups of messages.

use std::sync::Arc;

use harness_memory::compact::item::Item;
use harness_memory::compact::window::{
    ContextWindow, FlooredCharacters, Measure, SelectiveToolCall, SlidingWindow, Summarization,
    TokenBudgetComposed, ToolResults, Truncation, Window, WindowGroup, WindowStrategy,
};
use serde_json::{Map, Value, json};

use super::convert::{Done, bare_view, given_tokens, items};
use crate::turn::convert::{at, list, text};

pub(super) fn grouping(input: &Value) -> Done<Value> {
    Ok(json!({"groups": groups(&window(input)?)}))
}

pub(super) fn run(input: &Value) -> Done<Value> {
    let mut window = window(input)?;
    let groups = groups(&window);
    let before = window.included_tokens();
    let changed = apply(at(input, "strategy"), &mut window)?;

    let (mut excluded, mut links) = (Map::new(), Map::new());
    for group in window.groups() {
        for message in &group.messages {
            if let Some(reason) = group.excluded {
                excluded.insert(message.id.to_string(), json!(reason.as_str()));
            }
            if let Some(summary) = &group.summarized_by {
                links.insert(message.id.to_string(), json!(&**summary));
            }
        }
    }
    Ok(json!({
        "groups": groups,
        "tokens_before": before,
        "changed": changed,
        "tokens_after": window.included_tokens(),
        "excluded": excluded,
        "view": bare_view(&window.view()),
        "links": links,
    }))
}

fn window(input: &Value) -> Done<Window> {
    let tokens = given_tokens(input);
    let weigh = |parts: &[Item]| parts.first().and_then(|item| tokens.get(&*item.id)).copied().unwrap_or(0);
    Ok(Window::weighed(&items(input)?, weigh))
}

fn groups(window: &Window) -> Vec<Value> {
    let group = |group: &WindowGroup| {
        let ids: Vec<&str> = group.messages.iter().map(|message| &*message.id).collect();
        json!({
            "kind": group.kind.as_str(),
            "ids": ids,
            "group": group.id,
            "has_reasoning": group.has_reasoning,
        })
    };
    window.groups().iter().map(group).collect()
}

fn apply(wire: &Value, window: &mut Window) -> Done<bool> {
    if text(wire, "name") == "summarize" {
        return summarize(wire, window);
    }
    Ok(strategy(wire)?.apply(window, &FlooredCharacters))
}

fn summarize(wire: &Value, window: &mut Window) -> Done<bool> {
    let count = |key: &str, default: usize| size(wire, key).unwrap_or(default);
    let summarization = Summarization::new(count("target_count", 4), count("threshold", 2));
    let mut summarization = summarization.map_err(|e| e.to_string())?;
    let Some(request) = summarization.request(window, &FlooredCharacters) else { return Ok(false) };
    let reply = wire.get("reply").and_then(Value::as_str).unwrap_or_default();
    Ok(summarization.accept(window, &request, Ok(reply), &FlooredCharacters))
}

fn size(wire: &Value, key: &str) -> Option<usize> {
    wire.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

/// The strategy with the source's settings: a budget that cannot be met takes the system part, too.
fn strategy(wire: &Value) -> Done<Arc<dyn WindowStrategy>> {
    let number = |key: &str| wire.get(key).and_then(Value::as_u64).unwrap_or_default();
    let flag = |key: &str, default: bool| wire.get(key).and_then(Value::as_bool).unwrap_or(default);
    let keep_last = size(wire, "keep_last_tool_call_groups").or_else(|| size(wire, "keep_last"));
    let keep_last_tool_call_groups = keep_last.unwrap_or(1);
    Ok(match text(wire, "name") {
        "truncation" => {
            let measure = if text(wire, "by") == "messages" { Measure::Messages } else { Measure::Tokens };
            let truncation = Truncation::new(measure, number("max_n"), number("compact_to"));
            let mut truncation = truncation.map_err(|e| e.to_string())?;
            truncation.preserve_system = flag("preserve_system", true);
            truncation.preserve_first_user = flag("preserve_first_user", false);
            Arc::new(truncation)
        }
        "sliding" => {
            let keep = size(wire, "keep_last_groups").or_else(|| size(wire, "keep_last"));
            let mut sliding = SlidingWindow::new(keep.unwrap_or(1)).map_err(|e| e.to_string())?;
            sliding.preserve_system = flag("preserve_system", true);
            Arc::new(sliding)
        }
        "selective" => Arc::new(SelectiveToolCall { keep_last_tool_call_groups }),
        "tool_result" => Arc::new(ToolResults { keep_last_tool_call_groups, ..ToolResults::default() }),
        "window" => {
            let window = ContextWindow::new(number("max_context_window_tokens"), number("max_output_tokens"));
            let mut window = window.map_err(|e| e.to_string())?;
            window.keep_last_tool_call_groups = keep_last.unwrap_or(window.keep_last_tool_call_groups);
            window.is_strict = true;
            Arc::new(window)
        }
        "budget" | "token_budget" => {
            let strategies = list(wire, "strategies").iter().map(strategy).collect::<Done<Vec<_>>>()?;
            let mut budget = TokenBudgetComposed::new(number("token_budget"), strategies);
            budget.early_stop = flag("early_stop", true);
            budget.is_strict = true;
            Arc::new(budget)
        }
        other => return Err(format!("`{other}` is no strategy")),
    })
}
