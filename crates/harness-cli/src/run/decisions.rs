//! Decisions of the command line about pending calls.

use std::collections::HashMap;

use harness::core::message::ToolCall;
use harness::core::port::{Decision, Loaded, ProposedCall};
use harness::core::{CallDigest, CallId, Json};

use crate::args::ApprovalArgs;
use crate::render::visible;

/// Hexadecimal digits of a call's digest after its id.
const DIGITS: usize = 12;

/// Prefix for an id that would be ambiguous: `call:always`.
const PREFIX: &str = "call:";

/// Reason why a decision is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecisionError {
    #[error("`{}` is not a pending call", visible(call))]
    NotPending { call: String, pending: Vec<String> },
    #[error("more than one decision for call `{}`", visible(call))]
    DecidedTwice { call: String },
    #[error("the arguments for call `{}` are invalid: {problem}", visible(call))]
    Arguments { call: String, problem: String },
}

impl DecisionError {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::NotPending { .. } => "cli.not_pending",
            Self::DecidedTwice { .. } => "cli.decided_twice",
            Self::Arguments { .. } => "cli.edited_arguments",
        }
    }

    pub(crate) fn hint(&self) -> String {
        match self {
            Self::NotPending { pending, .. } if pending.is_empty() => {
                "the session has no pending calls".to_owned()
            }
            Self::NotPending { pending, .. } => format!("pending: {}", pending.join(", ")),
            Self::DecidedTwice { .. } => "name it in only one of --approve, --deny and --edit".to_owned(),
            Self::Arguments { .. } => "write --edit CALL='{\"key\": \"value\"}'".to_owned(),
        }
    }
}

/// Decision about a call, bound to the call that was shown.
#[derive(Debug)]
struct Decided {
    decision: Decision,
    /// Digest that the user has seen.
    seen: Option<String>,
}

/// Decisions about the calls that were pending when the program started.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    decided: HashMap<CallId, Decided>,
    /// Pending calls without a decision, while they stay pending.
    kept: Vec<CallId>,
}

impl Decisions {
    /// Parses the decisions of the arguments; `check` validates edited arguments.
    pub(super) fn of(
        args: &ApprovalArgs,
        pending: &[ToolCall],
        check: impl Fn(&ToolCall, &Json) -> Result<(), String>,
    ) -> Result<Self, DecisionError> {
        let mut this = Self::default();
        for text in args.approved() {
            let named = Named::of(text, pending, false)?;
            this.add(named, Decision::Granted)?;
        }
        for text in &args.deny {
            let named = Named::of(text, pending, true)?;
            let reason = named.value.map(str::trim).filter(|reason| !reason.is_empty());
            let reason = reason.unwrap_or("not approved").to_owned();
            this.add(named, Decision::Denied { reason })?;
        }
        for text in &args.edit {
            let named = Named::of(text, pending, true)?;
            let problem =
                |problem: String| DecisionError::Arguments { call: named.call.id.to_string(), problem };
            let value = named.value.ok_or_else(|| problem("missing arguments".to_owned()))?;
            let json = Json::parse(value).map_err(|fault| problem(format!("invalid JSON: {fault}")))?;
            if !json.is_object() {
                return Err(problem("not a JSON object".to_owned()));
            }
            check(named.call, &json).map_err(problem)?;
            this.add(named, Decision::Edited(json))?;
        }
        if args.names_calls() && args.policy().is_none() {
            let kept = pending.iter().filter(|call| !this.decided.contains_key(&call.id));
            this.kept = kept.map(|call| call.id.clone()).collect();
        }
        Ok(this)
    }

    fn add(&mut self, named: Named<'_, '_>, decision: Decision) -> Result<(), DecisionError> {
        let decided = Decided { decision, seen: named.seen.map(str::to_owned) };
        match self.decided.insert(named.call.id.clone(), decided) {
            Some(_) => Err(DecisionError::DecidedTwice { call: named.call.id.to_string() }),
            None => Ok(()),
        }
    }

    /// Takes the decision about a call, which applies once. A decision about a different call leaves it pending.
    pub(super) fn take(&mut self, proposed: &ProposedCall) -> Option<Decision> {
        let id = &proposed.call.id;
        if proposed.origin.parent.is_some() {
            // A call of a sub-agent has the ids of another transcript.
            return None;
        }
        if let Some(at) = self.kept.iter().position(|kept| kept == id) {
            self.kept.swap_remove(at);
            return Some(Decision::Later);
        }
        let Decided { decision, seen } = self.decided.remove(id)?;
        let same = seen.is_none_or(|seen| seen == fingerprint(proposed));
        Some(if same { decision } else { Decision::Later })
    }
}

/// Call named by an argument.
struct Named<'p, 't> {
    call: &'p ToolCall,
    seen: Option<&'t str>,
    value: Option<&'t str>,
}

impl<'p, 't> Named<'p, 't> {
    /// Finds the pending call of `CALL[@DIGEST][=VALUE]`; if two ids match, the longer one wins.
    fn of(text: &'t str, pending: &'p [ToolCall], has_value: bool) -> Result<Self, DecisionError> {
        let text = text.strip_prefix(PREFIX).unwrap_or(text);
        let mut calls: Vec<&ToolCall> = pending.iter().collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.id.as_str().len()));
        let found = calls.into_iter().find_map(|call| {
            let rest = text.strip_prefix(call.id.as_str())?;
            let digest = |rest: &'t str| Some(rest.strip_prefix('@')?.split('=').next().unwrap_or_default());
            let seen = digest(rest);
            let rest = seen.map_or(Some(rest), |seen| rest.get(1 + seen.len()..))?;
            match rest.strip_prefix('=') {
                Some(value) if has_value => Some(Self { call, seen, value: Some(value) }),
                None if rest.is_empty() => Some(Self { call, seen, value: None }),
                Some(_) | None => None,
            }
        });
        found.ok_or_else(|| DecisionError::NotPending {
            call: text.split('=').next().unwrap_or(text).to_owned(),
            pending: pending.iter().map(|call| visible(call.id.as_str()).into_owned()).collect(),
        })
    }
}

/// Pending calls of a session: those of the last answer without a result that never started.
pub(super) fn pending(loaded: &Loaded) -> Vec<ToolCall> {
    let results = loaded.messages.iter().rev().take_while(|message| message.as_tool_result().is_some());
    let answered = results.count();
    let last = loaded.messages.iter().rev().nth(answered).and_then(|message| message.as_assistant());
    let calls = last.into_iter().flat_map(|answer| answer.tool_calls().skip(answered));
    let started = |call: &ToolCall| loaded.open_calls.iter().any(|open| open.call == call.id);
    calls.filter(|call| !started(call)).map(|call| ToolCall::clone(call)).collect()
}

/// Identity to which a decision is bound in any run: the call, the contract of its tool, its arguments.
pub(super) fn fingerprint(proposed: &ProposedCall) -> String {
    let digest = CallDigest::of(None, &proposed.call.id, &proposed.def, &proposed.call.arguments);
    digest.as_str().chars().take(DIGITS).collect()
}

/// A call in the syntax of a shell and of this program.
pub(super) fn named(proposed: &ProposedCall) -> String {
    let id = proposed.call.id.as_str();
    let taken = matches!(id, "ask" | "always" | "never") || id.starts_with(PREFIX) || id.starts_with('-');
    let text = format!("{}{id}@{}", if taken { PREFIX } else { "" }, fingerprint(proposed));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':' | '/');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
