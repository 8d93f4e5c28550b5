//! Documents of a plan: trees of nodes.

use harness_core::Json;

use super::super::text::units;
use super::super::tree::Tree;
use super::state::{PlanOptions, PlanState};

/// A document from what a model gave: an object, or the JSON text of one.
///
/// # Errors
/// A sentence for the model.
pub(super) fn read(given: &Json, options: &PlanOptions) -> Result<Json, String> {
    let document = match given.to::<String>() {
        Ok(text) => Json::parse(&text).map_err(|error| format!("The document is not JSON: {error}."))?,
        Err(_) => given.clone(),
    };
    if !document.is_object() {
        return Err("The document must be a JSON object.".to_owned());
    }
    let length = units(document.text());
    let most = options.max_workflow_chars;
    if length > most {
        return Err(format!("The document has {length} characters; {most} are the most."));
    }
    check(&Tree::of(&document), options, 0)?;
    Ok(document)
}

/// An object with a text `kind` is a node, at any place.
fn check(tree: &Tree, options: &PlanOptions, depth: usize) -> Result<(), String> {
    match tree {
        Tree::Leaf(json) if json.text().starts_with(['{', '[']) => {
            Err("The document is nested too deeply.".to_owned())
        }
        Tree::Leaf(_) | Tree::Text(_) => Ok(()),
        Tree::List(list) => list.iter().try_for_each(|value| check(value, options, depth)),
        Tree::Object(entries) => {
            let kind = text(entries, "kind");
            let depth = depth + usize::from(kind.is_some());
            if depth > options.max_depth {
                return Err(format!("Nodes are nested more than {} deep.", options.max_depth));
            }
            if let (Some(kind), Some(allowed)) = (kind, &options.allowed_node_kinds)
                && !allowed.iter().any(|allowed| **allowed == *kind)
            {
                return Err(format!("Node kind \"{kind}\" is not allowed. Allowed: {}.", allowed.join(", ")));
            }
            entries.iter().try_for_each(|(_, value)| check(value, options, depth))
        }
    }
}

fn text<'a>(entries: &'a [(String, Tree)], key: &str) -> Option<&'a str> {
    entries.iter().find_map(|(name, value)| match value {
        Tree::Text(text) if name == key => Some(text.as_str()),
        Tree::Text(_) | Tree::Leaf(_) | Tree::List(_) | Tree::Object(_) => None,
    })
}

/// The workflows that a document refers to: the texts under `workflow`, in order.
fn referred(document: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![Tree::of(document)];
    while let Some(tree) = waiting.pop() {
        match tree {
            Tree::Object(entries) => {
                found.extend(text(&entries, "workflow").map(str::to_owned));
                waiting.extend(entries.into_iter().map(|(_, value)| value));
            }
            Tree::List(list) => waiting.extend(list),
            Tree::Leaf(_) | Tree::Text(_) => {}
        }
    }
    found
}

/// Checks that the plan can be executed.
///
/// # Errors
/// A sentence for the model: the first of no text, no tree, a reference that leads nowhere, a cycle.
pub(super) fn ready(state: &PlanState) -> Result<(), String> {
    if state.prd.as_ref().is_none_or(|prd| prd.trim().is_empty()) {
        return Err("Cannot execute: the PRD is missing. Write it with updatePrd.".to_owned());
    }
    let Some(tree) = &state.plan_tree else {
        return Err("Cannot execute: the plan tree is missing. Write it with setPlanTree.".to_owned());
    };
    let all = || [tree].into_iter().chain(state.workflows.iter().map(|workflow| &workflow.document));
    for name in all().flat_map(referred) {
        if state.workflow(&name).is_none() {
            return Err(format!(
                "Cannot execute: workflow \"{name}\" is referred to and not defined. Define it with setWorkflow."
            ));
        }
    }
    match cycle(state) {
        Some(name) => {
            Err(format!("Cannot execute: workflow \"{name}\" refers to itself, directly or by others."))
        }
        None => Ok(()),
    }
}

/// A workflow that leads to itself. There are few workflows, so each is followed by itself.
fn cycle(state: &PlanState) -> Option<&str> {
    state.workflow_names().find(|start| {
        let mut seen: Vec<String> = Vec::new();
        let mut waiting = state.workflow(start).map(referred).unwrap_or_default();
        while let Some(name) = waiting.pop() {
            if name == **start {
                return true;
            }
            if !seen.contains(&name) {
                waiting.extend(state.workflow(&name).map(referred).unwrap_or_default());
                seen.push(name);
            }
        }
        false
    })
}

/// Whether a text may name a workflow: `^[a-z0-9][a-z0-9_-]{0,63}$`.
pub(super) fn is_slug(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&name.len())
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || c == '_' || c == '-')
}
