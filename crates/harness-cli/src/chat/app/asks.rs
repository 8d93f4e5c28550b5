//! Calls that need approval: one at a time, in the order of their arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::port::ProposedCall;
use harness::core::tool::RetryClass;
use harness::core::{CallId, Millis, Time};
use harness::tools::FilePreview;

use crate::chat::composer::Code;
use crate::render::line::{Line, Look, Text, fitted};
use crate::render::{DIM, NOTE, change_rows, not_shown, proposed_rows, visible};

/// Time during which a new approval ignores keys, because a user who is typing has not read it.
const QUIET: Millis = Millis(300);

/// Rows of a page that remain for the editor and its surroundings.
const ROWS_AROUND: usize = 9;

/// Maximum number of rows of a page, so that the conversation stays visible.
const MOST_ROWS: usize = 16;

/// Scope of a standing approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Calls of the tool with exactly these arguments.
    Arguments,
    /// All calls of the tool in this conversation.
    Tool,
}

/// Decision of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Run the call.
    Once,
    /// Run the call, and approve all calls in the scope for this conversation.
    Grant(Scope),
    /// Do not run the call; the model receives the reason.
    Deny {
        /// Reason for the model.
        reason: String,
    },
}

/// Effect of a key on an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Decided(Box<ProposedCall>, Verdict),
    /// The call is denied, and its reason is being written.
    Why,
    /// The approval shows something else.
    Shown,
}

/// Meaning of keys while an approval is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// None yet: the approval has just appeared.
    Wait,
    /// They decide.
    Decide,
    /// They continue a text that was started earlier.
    Write,
    /// They write the reason of a denial.
    Explain,
}

/// Progress of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Decide,
    /// Waiting for the scope of the approval.
    Choose,
    /// Waiting for a confirmation, because repeated calls may do harm.
    Confirm(Scope),
}

/// Open approvals.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: VecDeque<ProposedCall>,
    /// Time when the first one appeared or changed.
    since: Time,
    step: Step,
    columns: usize,
    page: usize,
    /// Change that the first one makes, if it changes a file.
    preview: Option<Arc<FilePreview>>,
    /// Rows of the first one, start of its page, and the number of rows shown so far.
    rows: Vec<Line>,
    at: usize,
    seen: usize,
}

impl Asks {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Sets the size of the terminal. Rows shown at another size do not count as shown.
    pub(super) fn resize(&mut self, width: usize, rows: usize) {
        self.columns = width;
        self.page = rows.saturating_sub(ROWS_AROUND).clamp(2, MOST_ROWS);
        self.lay_out();
    }

    fn lay_out(&mut self) {
        let width = self.columns.saturating_sub(2).max(4);
        let rows = |first: &ProposedCall| match &self.preview {
            Some(change) => {
                let texts = (change.before.as_deref(), &*change.after);
                change_rows(first.call.name.as_str(), &change.path, texts, width)
            }
            None => proposed_rows(first, width),
        };
        self.rows = self.open.front().map(rows).unwrap_or_default();
        (self.at, self.seen) = (0, self.page);
    }

    /// Marks the first approval as new.
    fn start(&mut self, now: Time) {
        self.since = now;
        self.step = Step::Decide;
        self.lay_out();
    }

    /// Sets the open approvals. Returns whether the first one is unchanged.
    pub(super) fn set<'c>(
        &mut self,
        held: impl IntoIterator<Item = &'c ProposedCall>,
        preview: Option<Arc<FilePreview>>,
        now: Time,
    ) -> bool {
        let before = self.open.pop_front();
        self.open = held.into_iter().cloned().collect();
        let changed = std::mem::replace(&mut self.preview, preview);
        let same = self.open.front() == before.as_ref() && changed == self.preview;
        if !same {
            self.start(now);
        }
        same
    }

    /// Whether the first approval has just appeared.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        now.since(self.since) < QUIET
    }

    /// Removes a call that was decided or cancelled.
    pub(super) fn remove(&mut self, call: &CallId, now: Time) {
        let first = self.open.front().is_some_and(|ask| ask.call.id == *call);
        self.open.retain(|ask| ask.call.id != *call);
        if first {
            self.preview = None;
            self.start(now);
        }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.preview = None;
        self.rows.clear();
    }

    /// Characters of the first call that were not shown yet.
    fn hidden(&self) -> usize {
        self.rows.iter().skip(self.seen).map(|row| row.plain().chars().count()).sum()
    }

    /// Applies a key to the first approval, which stays open until the thread confirms the decision.
    pub(super) fn key(&mut self, code: &Code, now: Time) -> Option<Pressed> {
        let ask = self.open.front()?;
        if self.is_fresh(now) {
            return None;
        }
        let decided = |verdict| Some(Pressed::Decided(Box::new(ask.clone()), verdict));
        if *code == Code::Esc && self.step != Step::Decide {
            return Some(self.go(Step::Decide, now));
        }
        let Code::Char(letter) = code else { return None };
        let letter = letter.to_ascii_lowercase();
        let is_unsafe = ask.def.class == RetryClass::Unsafe;
        match (self.step, letter) {
            (_, 'v') if self.rows.len() > self.page => {
                self.at = if self.at + self.page < self.rows.len() { self.at + self.page } else { 0 };
                self.seen = self.seen.max(self.at + self.page);
                Some(Pressed::Shown)
            }
            (_, 'n') => decided(Verdict::Deny { reason: DENIED.to_owned() }),
            (Step::Decide, 'd') => Some(Pressed::Why),
            _ if self.hidden() > 0 => None,
            (Step::Decide, 'y') => decided(Verdict::Once),
            (Step::Decide, 'a') => Some(self.go(Step::Choose, now)),
            (Step::Choose, '1') if is_unsafe => Some(self.go(Step::Confirm(Scope::Arguments), now)),
            (Step::Choose, '2') if is_unsafe => Some(self.go(Step::Confirm(Scope::Tool), now)),
            (Step::Choose, '1') => decided(Verdict::Grant(Scope::Arguments)),
            (Step::Choose, '2') => decided(Verdict::Grant(Scope::Tool)),
            (Step::Confirm(scope), 'y') => decided(Verdict::Grant(scope)),
            (Step::Decide | Step::Choose | Step::Confirm(_), _) => None,
        }
    }

    /// Changes the progress; the new text must be read first.
    fn go(&mut self, step: Step, now: Time) -> Pressed {
        (self.step, self.since) = (step, now);
        Pressed::Shown
    }

    /// Denies the first call with a reason.
    pub(super) fn deny(&self, reason: &str) -> Option<(Box<ProposedCall>, Verdict)> {
        let ask = self.open.front()?;
        let reason = if reason.trim().is_empty() { DENIED } else { reason.trim() };
        Some((Box::new(ask.clone()), Verdict::Deny { reason: reason.to_owned() }))
    }

    /// Rows of the first approval.
    pub(super) fn rows(&self, width: usize, keys: Keys) -> Vec<Line> {
        let Some(ask) = self.open.front() else { return Vec::new() };
        let mut rows = Vec::new();
        for (number, row) in self.rows.iter().skip(self.at).take(self.page).enumerate() {
            let mut line = Line::of(NOTE, if number == 0 && self.at == 0 { "? " } else { "  " });
            line.append(row.clone());
            rows.push(line);
        }
        let hidden = self.hidden();
        if hidden > 0 {
            let lines = self.rows.len().saturating_sub(self.seen);
            let text = format!("  … {}", not_shown(hidden, lines));
            rows.push(fitted(&text, width, &Look::of(DIM)));
        }
        let mut why = Text::default();
        let more = if self.open.len() > 1 { format!(" · 1 of {}", self.open.len()) } else { String::new() };
        why.push(&format!("{}{more}", visible(&ask.reason)), &Look::of(DIM));
        let mut below = why.wrap(width.saturating_sub(2));
        below.truncate(2);
        let mut shown = Text::default();
        let choices = match keys {
            Keys::Decide => self.choices(ask),
            Keys::Write => "send or clear the text in the editor, then decide".to_owned(),
            Keys::Wait | Keys::Explain => String::new(),
        };
        shown.push(&choices, &Look::of(NOTE));
        below.extend(shown.wrap(width.saturating_sub(2)).into_iter().filter(|row| !row.is_empty()));
        rows.extend(below.into_iter().map(|row| {
            let mut line = Line::new();
            line.pad(2);
            line.append(row);
            line
        }));
        rows
    }

    /// Current meaning of keys.
    fn choices(&self, ask: &ProposedCall) -> String {
        let name = visible(ask.call.name.as_str());
        let view = if self.rows.len() > self.page { "v view more · " } else { "" };
        match self.step {
            _ if self.hidden() > 0 => "v view more · n no · d no, with a reason".to_owned(),
            Step::Decide => format!("{view}y once · a always … · n no · d no, with a reason"),
            Step::Choose => {
                format!(
                    "{view}grant: 1 {name} with exactly these arguments · 2 every call of {name} · Esc back"
                )
            }
            Step::Confirm(Scope::Arguments) => {
                format!("{name} is unsafe. Grant these arguments? y yes · Esc back")
            }
            Step::Confirm(Scope::Tool) => format!("{name} is unsafe. Grant every call? y yes · Esc back"),
        }
    }
}

/// Default reason for the model.
const DENIED: &str = "the user denied this call";
