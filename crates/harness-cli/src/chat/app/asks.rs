//! Calls that somebody must decide about: one question at a time, in the order in which they came.

use std::collections::VecDeque;

use harness::core::port::ProposedCall;
use harness::core::{CallId, Millis, Time};

use super::calls::shown_call;
use crate::chat::composer::Code;
use crate::render::line::{Line, Look, Text};
use crate::render::{BOLD, DIM, NOTE};

/// For how long a question that just appeared takes no key: whoever is typing has not read it.
const QUIET: Millis = Millis(300);

/// A call that is held.
#[derive(Clone, Debug)]
struct Ask {
    proposed: ProposedCall,
    name: String,
    arguments: String,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Run it.
    Once,
    /// Run it, and every call of this tool from now on.
    Always {
        /// The tool.
        tool: String,
    },
    /// Do not run it; the model is told why.
    Deny {
        /// Why.
        reason: String,
    },
}

/// A key that a question understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Decided(Box<ProposedCall>, Verdict),
    /// The call is denied, and the reason is about to be written.
    Why,
}

/// What keys do while a question is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Nothing yet: the question has just appeared.
    Wait,
    /// They answer it.
    Decide,
    /// They go on with a text that was begun before.
    Write,
    /// They write why the call is denied.
    Explain,
}

/// The questions that are open.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: VecDeque<Ask>,
    /// When the first of them appeared.
    since: Time,
}

impl Asks {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// These are open now. Whether the first of them is the one that was it before.
    pub(super) fn set<'c>(&mut self, held: impl IntoIterator<Item = &'c ProposedCall>, now: Time) -> bool {
        let before = self.open.front().map(|ask| ask.proposed.digest());
        self.open.clear();
        for proposed in held {
            let (name, arguments) = shown_call(&proposed.call);
            self.open.push_back(Ask { proposed: proposed.clone(), name, arguments });
        }
        let same = self.open.front().map(|ask| ask.proposed.digest()) == before;
        if !same {
            self.since = now;
        }
        same
    }

    /// Whether the first question has just appeared.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        now.since(self.since) < QUIET
    }

    /// Somebody decided about a call, or it is not wanted any more.
    pub(super) fn remove(&mut self, call: &CallId, now: Time) {
        let first = self.open.front().is_some_and(|ask| ask.proposed.call.id == *call);
        self.open.retain(|ask| ask.proposed.call.id != *call);
        if first {
            self.since = now;
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// What a key means to the first question; it stays open until the thread says that it is answered.
    pub(super) fn key(&self, code: &Code, now: Time) -> Option<Pressed> {
        let ask = self.open.front()?;
        if self.is_fresh(now) {
            return None;
        }
        let Code::Char(letter) = code else { return None };
        let verdict = match letter.to_ascii_lowercase() {
            'y' => Verdict::Once,
            'a' => Verdict::Always { tool: ask.name.clone() },
            'n' => Verdict::Deny { reason: "the user does not want this call".to_owned() },
            'd' => return Some(Pressed::Why),
            _ => return None,
        };
        Some(Pressed::Decided(Box::new(ask.proposed.clone()), verdict))
    }

    /// The first question denied for a reason.
    pub(super) fn deny(&self, reason: &str) -> Option<(Box<ProposedCall>, Verdict)> {
        let ask = self.open.front()?;
        let reason =
            if reason.trim().is_empty() { "the user does not want this call" } else { reason.trim() };
        Some((Box::new(ask.proposed.clone()), Verdict::Deny { reason: reason.to_owned() }))
    }

    /// The first question.
    pub(super) fn rows(&self, width: usize, keys: Keys) -> Vec<Line> {
        let Some(ask) = self.open.front() else { return Vec::new() };
        let mut head = Text::default();
        head.push("? ", &Look::of(NOTE));
        head.push(&ask.name, &Look::of(BOLD));
        head.push(&format!(" {}", ask.arguments), &Look::default());
        let mut rows = head.chop(width);
        if rows.len() > MOST_ROWS {
            rows.truncate(MOST_ROWS - 1);
            rows.push(Line::of(DIM, "  … (it is longer than there is room for)"));
        }
        let mut why = Text::default();
        let more = if self.open.len() > 1 { format!(" · 1 of {}", self.open.len()) } else { String::new() };
        why.push(&format!("{}{more}", ask.proposed.reason), &Look::of(DIM));
        let mut below = why.wrap(width.saturating_sub(2));
        below.truncate(2);
        let mut shown = Text::default();
        let always = format!("y once · a always for {} · n no · d no, and say why", ask.name);
        let choices = match keys {
            Keys::Decide => always.as_str(),
            Keys::Write => "send or empty what you are writing, then decide",
            Keys::Wait | Keys::Explain => "",
        };
        shown.push(choices, &Look::of(NOTE));
        below.extend(shown.wrap(width.saturating_sub(2)).into_iter().filter(|row| !row.is_empty()));
        rows.extend(below.into_iter().map(|row| {
            let mut line = Line::new();
            line.pad(2);
            line.append(row);
            line
        }));
        rows
    }
}

/// Rows of one call.
const MOST_ROWS: usize = 6;
