//! Writing a session file anew.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{Entry, EntryHead};
use harness_core::{CallId, EntryId, Json, JsonObject};
use serde::Serialize;

use super::home::io_error;
use super::line::{Header, Line, Written, WrittenHeader, decode};
use super::lock::{hold_new, is_at};
use super::read::{self, Tail};
use super::session::{FileSession, Shared, State};
use crate::chain::{End, Parent, implied, numbered};
use crate::error::{Action, Error};
use crate::fold::Item;
use crate::seal::sealed;

impl FileSession {
    /// Rewrites the session so that its transcript is `messages`, to purge content that must not be
    /// kept. (Compaction does not need this: it adds an entry and keeps the whole transcript.)
    ///
    /// A message that is already in the session keeps its line unchanged, including unknown keys;
    /// so do lines of unknown types. Records of calls are kept with their call; the last run
    /// state and the last states of tools are kept. Compactions are removed. New messages get new lines, dated `head.at`. Other
    /// branches, and the content of a torn last line, are removed.
    ///
    /// The new file is complete and on stable storage before it replaces the old one, so there is
    /// always the old session or the new one. It keeps the old permissions.
    ///
    /// # Errors
    /// Those of an append and a load; the old session is then unchanged.
    pub fn replace_blocking(&self, head: &EntryHead, messages: &[Arc<Message>]) -> Result<(), Error> {
        self.0.replace(head, messages)
    }
}

impl Shared {
    fn replace(&self, head: &EntryHead, messages: &[Arc<Message>]) -> Result<(), Error> {
        let state = &mut *self.at_rest()?;
        if state.tail.is_none() {
            self.scan(state)?;
        }
        if messages.is_empty() && state.tail.as_ref().is_none_or(|tail| !tail.used && tail.torn == 0) {
            return Ok(());
        }
        if self.home.rows.is_none() {
            self.heal(state)?;
        }
        let old = self.old_lines(state)?;
        let header = state.header.clone().unwrap_or_else(|| self.first_line(head));
        let bytes = self.rewrite(state, &header, old, head, messages)?;
        let mut placed = None;
        let outcome = match &self.home.rows {
            Some(rows) => self.keep_lock(state).and_then(|()| rows.replace(&bytes, false)),
            None => self.swap(&bytes, &mut placed),
        };
        state.void();
        // Even when the swap failed, the new file may be in place.
        if let Some(file) = placed.filter(|file| is_at(file, &self.home.real).unwrap_or(false)) {
            state.file = Some(Arc::new(file));
        }
        state.synced = None;
        state.tail = None;
        state.end = End::Last;
        state.listed = false;
        outcome?;
        state.header = Some(header);
        Ok(())
    }

    fn old_lines(&self, state: &State) -> Result<Vec<Old>, Error> {
        let made = state.tail.as_ref().map_or(0, |tail| tail.length);
        let content = self.home.content(&self.options, made)?;
        let mut lines = read::Lines::new(&*content, &self.home.path, &self.options);
        let mut old = Vec::new();
        while let Some(at) = lines.next()? {
            // What cannot be read was refused by the scan before.
            if let Ok(line) = decode(lines.text()) {
                old.push(Old::new(line, at.number, lines.text()));
            }
        }
        Ok(old)
    }

    fn rewrite(
        &self,
        state: &State,
        header: &Header,
        old: Vec<Old>,
        head: &EntryHead,
        messages: &[Arc<Message>],
    ) -> Result<Vec<u8>, Error> {
        let stored = old.iter().map(|line| match &line.what {
            What::Message(message) => Some(message),
            What::Call(_) | What::State(_) | What::Compaction | What::Other => None,
        });
        let places = places(stored, messages);
        let kept_calls = calls(messages);
        let last_states = last_states(&old);
        let mut out = Rewriter { session: self, head, buffer: Vec::new(), tail: Tail::default() };
        out.tail.made = state.tail.as_ref().map_or(0, |tail| tail.made);
        if state.header.is_none() {
            out.line(&WrittenHeader::from(header))?;
        }
        let mut next = 0;
        for (place, line) in old.into_iter().enumerate() {
            match &line.what {
                What::Message(_) => {
                    let Some(to) = places.get(&place).copied() else { continue };
                    for message in messages.get(next..to).unwrap_or_default() {
                        out.new_message(message)?;
                    }
                    next = to.saturating_add(1);
                    out.keep(&line)?;
                }
                What::Call(call) if !kept_calls.contains(call) => {}
                // What it showed is the transcript now, and its summary may tell what is purged.
                What::Compaction => {}
                What::State(name) if last_states.get(name) != Some(&place) => {}
                What::Call(_) | What::State(_) | What::Other => out.keep(&line)?,
            }
        }
        for message in messages.get(next..).unwrap_or_default() {
            out.new_message(message)?;
        }
        let buffer = match &self.options.key {
            Some(key) => sealed(&out.buffer, key).map_err(|reason| self.unstorable(reason))?,
            None => out.buffer,
        };
        let (bytes, limit) = (buffer.len() as u64, self.options.limits.file_bytes);
        if bytes > limit {
            return Err(Error::TooLarge { path: self.home.path.clone(), bytes, limit });
        }
        Ok(buffer)
    }

    /// Puts a file of these bytes in the session file's place.
    fn swap(&self, bytes: &[u8], placed: &mut Option<fs::File>) -> Result<(), Error> {
        let mut attempt = || {
            let permissions = fs::metadata(&self.home.real)?.permissions();
            self.options.disk.put_in_place(&self.home.real, bytes, Some(permissions), |file| {
                hold_new(&file)?;
                *placed = Some(file);
                Ok(())
            })
        };
        attempt().map_err(|source| io_error(Action::Replace, &self.home.path, source))
    }
}

/// A line of the old file.
struct Old {
    text: Vec<u8>,
    /// Absent on the header and on foreign lines outside the chain.
    id: Option<EntryId>,
    /// Its parent; `None` if it names none, or is not an entry.
    parent: Option<EntryId>,
    what: What,
}

enum What {
    Message(Arc<Message>),
    Call(CallId),
    /// State of this name.
    State(String),
    Compaction,
    Other,
}

impl Old {
    fn new(line: Line<'_>, number: u64, text: &[u8]) -> Self {
        let text_of = text.to_vec();
        let (id, parent, record) = match line {
            Line::Header(_) => return Self { text: text_of, id: None, parent: None, what: What::Other },
            Line::Entry { id, parent, record } => (id, parent, record),
            Line::Compaction { id, parent, .. } => {
                let id = Some(EntryId::from(&*id));
                return Self { text: text_of, id, parent: name_of(parent), what: What::Compaction };
            }
        };
        let what = match record.item {
            Item::Message(message) => What::Message(message),
            Item::Call(note) => What::Call(note.call),
            Item::State(state) => What::State(state.0),
            Item::Compaction(_) | Item::RunEnd(_) | Item::Other => What::Other,
        };
        let bare = id.is_none() && matches!(what, What::Message(_));
        let id = if bare { Some(implied(number)) } else { id.map(|id| EntryId::from(&*id)) };
        Self { text: if bare { Vec::new() } else { text_of }, id, parent: name_of(parent), what }
    }
}

/// Place of the last state of each name. Earlier ones may have what is purged.
fn last_states(old: &[Old]) -> HashMap<String, usize> {
    let states = old.iter().enumerate().filter_map(|(place, line)| match &line.what {
        What::State(name) => Some((name.clone(), place)),
        What::Message(_) | What::Call(_) | What::Compaction | What::Other => None,
    });
    states.collect()
}

fn name_of(parent: Parent<'_>) -> Option<EntryId> {
    match parent {
        Parent::Of(name) => Some(EntryId::from(&*name)),
        Parent::Unsaid | Parent::Root => None,
    }
}

/// Which old line (by its place) is the line of which new message (by its place): for each message in turn
/// the first line that holds it, after the line of the message before.
pub(crate) fn places<'a>(
    old: impl Iterator<Item = Option<&'a Arc<Message>>>,
    messages: &[Arc<Message>],
) -> HashMap<usize, usize> {
    let mut known: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (place, message) in old.enumerate() {
        if let Some(message) = message {
            known.entry(text(message)).or_default().push(place);
        }
    }
    let mut places = HashMap::new();
    let mut from = 0;
    for (to, message) in messages.iter().enumerate() {
        let found =
            known.get(&text(message)).and_then(|at| at.get(at.partition_point(|place| *place < from)));
        if let Some(place) = found {
            places.insert(*place, to);
            from = place.saturating_add(1);
        }
    }
    places
}

/// A message as it would be written; one that cannot be is refused when its line is.
fn text(message: &Message) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// The calls of a transcript.
pub(crate) fn calls(messages: &[Arc<Message>]) -> HashSet<CallId> {
    let assistant = messages.iter().filter_map(|message| message.as_assistant());
    assistant.flat_map(AssistantMessage::tool_calls).map(|call| call.id.clone()).collect()
}

/// Puts the lines of the new file together, each following the one before.
struct Rewriter<'a> {
    session: &'a Shared,
    head: &'a EntryHead,
    buffer: Vec<u8>,
    /// The end of the new file so far.
    tail: Tail,
}

impl Rewriter<'_> {
    fn line<T: Serialize>(&mut self, line: &T) -> Result<(), Error> {
        self.session.line(line, &self.tail, &mut self.buffer)?;
        self.tail.grow();
        Ok(())
    }

    fn new_message(&mut self, message: &Arc<Message>) -> Result<(), Error> {
        self.tail.made = self.tail.made.saturating_add(1);
        self.message(numbered(self.tail.made), message)
    }

    fn message(&mut self, id: EntryId, message: &Arc<Message>) -> Result<(), Error> {
        self.session.check(message)?;
        let last = self.tail.last.replace(id.clone());
        let entry = Entry::Message(message);
        self.line(&Written {
            id: &id,
            parent: last.as_ref(),
            head: self.head,
            entry: &entry,
            compaction: None,
        })
    }

    /// Writes an old line as it was, but for what it follows.
    fn keep(&mut self, line: &Old) -> Result<(), Error> {
        match (&line.what, &line.id) {
            (What::Message(message), Some(id)) if line.text.is_empty() => {
                return self.message(id.clone(), message);
            }
            (_, Some(id)) if line.parent != self.tail.last => {
                let mut fields: JsonObject = serde_json::from_slice(&line.text)
                    .map_err(|error| self.session.unstorable(super::line::reason(&error)))?;
                fields.set(
                    "parent_id",
                    self.tail.last.as_ref().map_or_else(Json::null, |id| Json::string(id.as_str())),
                );
                self.line(&fields)?;
            }
            _ => {
                self.buffer.extend_from_slice(&line.text);
                self.buffer.push(b'\n');
                self.tail.grow();
            }
        }
        if let Some(id) = &line.id {
            self.tail.last = Some(id.clone());
        }
        Ok(())
    }
}
