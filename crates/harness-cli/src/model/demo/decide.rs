//! The next action: call tools, hand off, or answer.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use harness::core::tool::{RetryClass, ToolDef, ToolKind};
use serde_json::{Map, Value};

use super::files;
use super::fill::{Facts, arguments};
use super::situation::Situation;
use super::words::subject;

/// Rounds of calls about one question.
const ROUNDS: usize = 6;

/// Calls of one answer.
const CALLS: usize = 4;

/// The next action.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Call these tools.
    Call(Vec<(String, Value)>),
    /// A tool fits, and the question does not say what it needs.
    Missing { tool: String, argument: String },
    /// A tool fits whose arguments must be the user's own: it writes files or runs programs.
    Exact { tool: String },
    /// There is nothing more to do.
    Answer,
}

/// How well a tool fits a question: words of its name, then words of its description.
type Fit = (usize, usize);

/// Decides by the words of the question.
pub(super) fn decide(situation: &Situation<'_>) -> Next {
    if situation.done.len() >= ROUNDS * CALLS {
        return Next::Answer;
    }
    if let Some(ordered) = ordered(situation) {
        return ordered;
    }
    if let Some(next) = files::decide(situation) {
        return next;
    }
    let asked = subject(&situation.question);
    let facts = Facts { asked: &situation.question, found: situation.found() };
    let fitting = fitting(situation.tools, &asked);
    let best = fitting.first().map(|(fit, _)| weight(*fit)).unwrap_or_default();

    if let Some(def) = handoff(&fitting, &asked, best)
        && !situation.was_made(def, &Value::Null)
    {
        return Next::Call(vec![(def.name.to_string(), Value::Object(Map::new()))]);
    }
    let mut missing = None;
    let (acting, looking): (Vec<_>, Vec<_>) =
        fitting.into_iter().filter(|(_, def)| !is_handoff(def)).partition(|(_, def)| acts(def));
    let ordered = acting.iter().any(|(_, def)| is_named(def, situation.tools, &asked));
    let mut calls = Vec::new();
    // When something is to be done, only what is named is looked at before.
    for ((by_name, _), def) in looking.into_iter().filter(|((by_name, _), _)| *by_name > 0 || !ordered) {
        match arguments(&schema(def), def.name.as_str(), &facts).map(Value::Object) {
            Ok(filled) if !situation.was_made(def, &filled) => calls.push((def.name.to_string(), filled)),
            Ok(_) => {}
            Err(argument) if by_name > 0 => missing = missing.or(Some((def, argument))),
            Err(_) => {}
        }
    }
    calls.truncate(CALLS);
    if !calls.is_empty() {
        return Next::Call(calls);
    }
    // What acts is named by a word of its own, comes after all that only looks, and is done once.
    let mut exact = None;
    for (_, def) in acting.into_iter().filter(|(_, def)| is_named(def, situation.tools, &asked)) {
        if needs_exact_order(def) {
            exact = exact.or(Some(def));
            continue;
        }
        if situation.done.iter().any(|done| done.call.name == def.name) {
            continue;
        }
        match arguments(&schema(def), def.name.as_str(), &facts) {
            Ok(filled) => return Next::Call(vec![(def.name.to_string(), Value::Object(filled))]),
            Err(argument) => missing = missing.or(Some((def, argument))),
        }
    }
    let has_results = situation.results().next().is_some();
    match (missing, exact) {
        (Some((def, argument)), _) if !has_results => Next::Missing { tool: def.name.to_string(), argument },
        (None, Some(def)) if !has_results => Next::Exact { tool: def.name.to_string() },
        (Some(_) | None, Some(_) | None) => Next::Answer,
    }
}

/// Whether a tool acts on a command line, or on a file with more than its path: no rule makes up such arguments.
fn needs_exact_order(def: &ToolDef) -> bool {
    let schema = schema(def);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let has = |names: &[&str]| required.iter().any(|name| names.contains(name));
    acts(def)
        && (has(&["command", "cmd", "script", "argv"])
            || has(&["path", "file", "file_path"]) && required.len() > 1)
}

/// The tools that fit a question, the best first.
fn fitting<'t>(tools: &'t [ToolDef], asked: &BTreeSet<String>) -> Vec<(Fit, &'t ToolDef)> {
    let fits = tools.iter().map(|def| (fit(def, asked), def));
    let mut fitting: Vec<_> = fits.filter(|(fit, _)| *fit > (0, 0)).collect();
    fitting.sort_by_key(|(fit, _)| Reverse(weight(*fit)));
    fitting
}

/// Whether the question has a word of the tool's name that is in no other tool's name.
fn is_named(def: &ToolDef, tools: &[ToolDef], asked: &BTreeSet<String>) -> bool {
    let others = tools.iter().filter(|other| other.name != def.name && !is_handoff(other));
    let others: BTreeSet<String> = others.flat_map(|other| subject(&spoken_name(other))).collect();
    subject(&spoken_name(def)).difference(&others).any(|word| asked.contains(word))
}

/// `call TOOL {"a": 1}`: exactly that call.
fn ordered(situation: &Situation<'_>) -> Option<Next> {
    let (_, rest) = situation.question.split_once("call ")?;
    let rest = rest.trim_start_matches(['`', ' ']);
    let fits = |def: &&ToolDef| {
        rest.strip_prefix(def.name.as_str())
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let def = situation.tools.iter().find(fits)?;
    if situation.done.iter().any(|done| done.call.name == def.name) {
        return Some(Next::Answer);
    }
    let start = rest.find('{');
    let mut written =
        start.and_then(|at| rest.get(at..)).map(|text| serde_json::Deserializer::from_str(text).into_iter());
    let filled = if let Some(Ok(Value::Object(filled))) = written.as_mut().and_then(Iterator::next) {
        filled
    } else {
        let facts = Facts { asked: &situation.question, found: situation.found() };
        match arguments(&schema(def), def.name.as_str(), &facts) {
            Ok(filled) => filled,
            Err(argument) => return Some(Next::Missing { tool: def.name.to_string(), argument }),
        }
    };
    Some(Next::Call(vec![(def.name.to_string(), Value::Object(filled))]))
}

/// The handoff that fits best. It wins a tie with a tool only if it matches a word that no tool has. A tie between
/// handoffs goes to the one that matches more distinctive words.
fn handoff<'t>(fitting: &[(Fit, &'t ToolDef)], asked: &BTreeSet<String>, best: usize) -> Option<&'t ToolDef> {
    let tools = || fitting.iter().filter(|(_, def)| !is_handoff(def));
    let own = tools().map(|(fit, _)| weight(*fit)).max().unwrap_or_default();
    let known: BTreeSet<String> = tools().flat_map(|(_, def)| subject(&everything(def))).collect();
    let is_new =
        |def: &ToolDef| subject(&everything(def)).intersection(asked).any(|word| !known.contains(word));
    let fits = |fit: Fit, def: &ToolDef| weight(fit) == best && (weight(fit) > own || is_new(def));
    let handoffs = fitting.iter().filter(|(fit, def)| is_handoff(def) && fits(*fit, def));
    let rare = |def: &ToolDef| {
        let others = fitting.iter().filter(|(_, other)| is_handoff(other) && other.name != def.name);
        let others: BTreeSet<String> = others.flat_map(|(_, other)| subject(&other.description)).collect();
        subject(&described(def)).intersection(asked).filter(|word| !others.contains(*word)).count()
    };
    handoffs.map(|(_, def)| *def).max_by_key(|def| rare(def))
}

fn weight((by_name, by_description): Fit) -> usize {
    by_name * 3 + by_description
}

fn fit(def: &ToolDef, asked: &BTreeSet<String>) -> Fit {
    let count = |text: &str| subject(text).intersection(asked).count();
    (count(&spoken_name(def)), count(&described(def)))
}

/// The tool's name in words; a handoff's is its agent's.
fn spoken_name(def: &ToolDef) -> String {
    match &def.kind {
        ToolKind::Handoff(agent) => agent.as_str().replace(['_', '-'], " "),
        ToolKind::Function | _ => def.name.as_str().replace(['_', '-', '.'], " "),
    }
}

fn described(def: &ToolDef) -> String {
    def.description.replace("Handoff to agent", "")
}

fn everything(def: &ToolDef) -> String {
    format!("{} {}", spoken_name(def), described(def))
}

fn is_handoff(def: &ToolDef) -> bool {
    matches!(def.kind, ToolKind::Handoff(_))
}

/// Whether a call has an effect outside of the conversation.
pub(super) fn acts(def: &ToolDef) -> bool {
    !def.internal && (def.requires_approval || def.class != RetryClass::Pure)
}

pub(super) fn schema(def: &ToolDef) -> Value {
    def.input_schema.as_ref().and_then(|schema| schema.to().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
    use harness::core::port::{ModelRequest, PreparedAgent};
    use harness::core::transcript::{Transcript, View};
    use harness::core::{AgentId, Json};
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, required: &[&str], class: RetryClass) -> ToolDef {
        let properties: Map<String, Value> =
            required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let mut def = ToolDef::new(name, description);
        (def.input_schema, def.class) = (Some(Json::of(&schema).unwrap()), class);
        def
    }

    fn handoff(agent: &str, description: &str) -> ToolDef {
        let mut def = ToolDef::new(format!("handoff_to_{agent}"), description);
        def.kind = ToolKind::Handoff(AgentId::from(agent));
        def
    }

    /// What is decided about a question, after these calls and their results.
    #[track_caller]
    fn check(question: &str, done: &[(&str, &str, &str)], expected: Next) {
        let tools = [
            tool("find_order", "Looks up an order by its number.", &["order_id"], RetryClass::Pure),
            tool("cancel_order", "Cancels an order.", &["order_id"], RetryClass::Unsafe),
            handoff("refunds", "Handoff to agent \"Refunds\". Pays money back."),
        ];
        let mut messages = vec![Arc::new(Message::user(question))];
        for (number, (name, arguments, result)) in done.iter().enumerate() {
            let call = ToolCall::new(format!("call-{number}"), *name, Json::parse(arguments).unwrap());
            let result = ToolResultMessage::new(&call, vec![Block::text(*result)], false);
            messages.push(Arc::new(AssistantMessage::calls([call]).into()));
            messages.push(Arc::new(result.into()));
        }
        let view = View::whole(messages.into_iter().collect::<Transcript>().prefix());
        let request = ModelRequest::new(view, Arc::new(PreparedAgent::new("orders", "", tools)));
        assert_eq!(decide(&Situation::of(&request)), expected);
    }

    fn call(name: &str, arguments: Value) -> Next {
        Next::Call(vec![(name.to_owned(), arguments)])
    }

    #[test]
    fn what_fits_is_called_once_and_then_there_is_an_answer() {
        check("Where is order 1042?", &[], call("find_order", json!({"order_id": "1042"})));
        let found = ("find_order", r#"{"order_id":"1042"}"#, r#"{"order":"1042"}"#);
        check("Where is order 1042?", &[found], Next::Answer);
        check("Good morning!", &[], Next::Answer);
    }

    #[test]
    fn what_acts_is_called_when_it_is_named_after_what_looks() {
        check("Cancel order 1042.", &[], call("find_order", json!({"order_id": "1042"})));
        let found = ("find_order", r#"{"order_id":"1042"}"#, r#"{"order":"1042"}"#);
        check("Cancel order 1042.", &[found], call("cancel_order", json!({"order_id": "1042"})));
        let cancelled = ("cancel_order", r#"{"order_id":"1042"}"#, "done");
        check("Cancel order 1042.", &[found, cancelled], Next::Answer);
    }

    #[test]
    fn another_agent_is_handed_what_no_tool_is_about() {
        check("I want my money back.", &[], call("handoff_to_refunds", json!({})));
        check("I want my money back.", &[("handoff_to_refunds", "{}", "")], Next::Answer);
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let missing = Next::Missing { tool: "find_order".to_owned(), argument: "order_id".to_owned() };
        check("Where is my order?", &[], missing);
    }

    #[test]
    fn command_lines_and_file_contents_are_not_made_up() {
        let check = |name: &str, required: &[&str], class: RetryClass, expected: bool| {
            assert_eq!(needs_exact_order(&tool(name, "", required, class)), expected, "{name}");
        };
        check("shell", &["command"], RetryClass::Unsafe, true);
        check("file_write", &["path", "content"], RetryClass::Unsafe, true);
        check("remove_file", &["path"], RetryClass::Unsafe, false);
        check("check_command", &["command"], RetryClass::Pure, false);
        check("cancel_order", &["order_id"], RetryClass::Unsafe, false);
    }

    #[test]
    fn a_message_may_order_a_call() {
        check(r#"call cancel_order {"order_id": "7"}"#, &[], call("cancel_order", json!({"order_id": "7"})));
        check("Please call `cancel_order` for 1042.", &[], call("cancel_order", json!({"order_id": "1042"})));
        let missing = Next::Missing { tool: "cancel_order".to_owned(), argument: "order_id".to_owned() };
        check("call cancel_order", &[], missing);
    }
}
