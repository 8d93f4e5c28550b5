//! Taking a session elsewhere: whole, or one branch of it.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use harness_core::port::EntryHead;
use harness_core::{EntryId, Json, JsonObject, SessionId, Time};

use super::{Body, Leaf, Tree};
use crate::disk::create_folder;
use crate::error::{Action, Error, Store};
use crate::jsonl::{Header, Home, Limits, OpenOptions, Program, WrittenNote, encode, header_line};
use crate::note::Note;

/// Options for forking a branch into a separate session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForkOptions {
    /// The name of the new session.
    pub id: SessionId,
    /// Time of the fork.
    pub at: Time,
    /// The session that it came from; default its file.
    pub parent_session: Option<String>,
}

impl ForkOptions {
    /// A new session of this name.
    pub fn new(id: impl Into<SessionId>, at: Time) -> Self {
        Self { id: id.into(), at, parent_session: None }
    }
}

impl Tree {
    /// Copies the path to a leaf into a new session, with its labels and without other branches.
    /// Entries keep their ids. The header names this session as its parent.
    ///
    /// # Errors
    /// A line cannot be converted.
    pub fn fork(&self, leaf: Leaf<'_>, options: ForkOptions) -> Result<Self, Error> {
        let mut header = Header::new(options.id);
        header.created_at = options.at.iso();
        header.program = Some(Program::new("harness", env!("CARGO_PKG_VERSION")));
        header.cwd = self.header.as_ref().and_then(|header| header.cwd.clone());
        header.meta = self.header.as_ref().and_then(|header| header.meta.clone());
        header.parent_session =
            options.parent_session.or_else(|| Some(self.path.to_string_lossy().into_owned()));
        let lines = self.branch_lines(leaf, &header, options.at).map_err(|error| Error::Unstorable {
            path: self.path.clone(),
            reason: crate::jsonl::reason(&error),
        })?;
        let unbounded = Limits { line_bytes: u64::MAX, file_bytes: u64::MAX };
        Self::parse(&lines, &self.path, &OpenOptions::new().limits(unbounded))
    }

    fn branch_lines(&self, leaf: Leaf<'_>, header: &Header, at: Time) -> Result<Vec<u8>, serde_json::Error> {
        let mut out = header_line(header)?;
        let texts: HashMap<u32, &str> =
            self.lines.iter().filter_map(|line| Some((line.place?, &*line.text))).collect();
        let places = self.places(leaf);
        let mut last: Option<&EntryId> = None;
        let mut on_path = HashSet::new();
        for place in places {
            let (Some(node), Some(text)) = (self.nodes.get(place as usize), texts.get(&place)) else {
                continue;
            };
            // Labels are put at the end; what followed one follows what it followed.
            if matches!(node.body, Body::Note(Note::Label { .. })) {
                continue;
            }
            if node.parent.as_ref() == last {
                out.extend_from_slice(text.as_bytes());
            } else {
                let mut fields: JsonObject = serde_json::from_str(text)?;
                fields.set("parent_id", named(last));
                serde_json::to_writer(&mut out, &fields)?;
            }
            out.push(b'\n');
            last = Some(&node.id);
            on_path.insert(&node.id);
        }
        let head = EntryHead::new(at, None, 0, None);
        let labels = self.labels().into_iter().filter(|(target, _)| on_path.contains(target));
        let mut last = last.cloned();
        for (number, (target, label)) in (1_u32..).zip(labels) {
            let (id, note) = (self.free_id(number), Note::label(target.clone(), label));
            encode(&WrittenNote { id: &id, parent: last.as_ref(), head: &head, note: &note }, &mut out)?;
            last = Some(id);
        }
        Ok(out)
    }

    /// The `number`th id that no entry has.
    fn free_id(&self, number: u32) -> EntryId {
        crate::chain::numbered(self.chain.made().saturating_add(number))
    }

    /// Writes all entries of all branches as a session file. Existing session lines are copied byte
    /// for byte, except a torn last line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_jsonl(&self, mut out: impl Write) -> io::Result<()> {
        match (&self.first_line, &self.header) {
            (Some(line), _) => writeln!(out, "{line}")?,
            (None, Some(header)) => out.write_all(&header_line(header)?)?,
            (None, None) if self.lines.is_empty() => {}
            (None, None) => {
                let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
                out.write_all(&header_line(&Header::new(SessionId::from(&*stem)))?)?;
            }
        }
        for line in &self.lines {
            writeln!(out, "{}", line.text)?;
        }
        Ok(())
    }

    /// Makes a new session of all entries of all branches: what [`Tree::write_jsonl`] writes, encrypted if the
    /// options have a key. It is complete and on stable storage before it has its name.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is such a session, and those of the operating system.
    pub fn save(&self, path: impl AsRef<Path>, options: &OpenOptions) -> Result<(), Error> {
        let home = Home::of(path.as_ref(), true)?;
        let failed = |source: io::Error| {
            if source.kind() == io::ErrorKind::AlreadyExists {
                Error::Exists { path: home.path.clone() }
            } else {
                Error::Io { store: Store::Sessions, action: Action::Write, path: home.path.clone(), source }
            }
        };
        let mut lines = Vec::new();
        self.write_jsonl(&mut lines).map_err(failed)?;
        if let Some(key) = &options.key {
            let unstorable = |reason| Error::Unstorable { path: home.path.clone(), reason };
            lines = crate::seal::sealed(&lines, key).map_err(unstorable)?;
        }
        if let Some(rows) = &home.rows {
            return rows.replace(&lines, true);
        }
        let folder = home.real.parent().map_or(Ok(()), create_folder);
        folder.and_then(|()| options.disk.put_new(&home.real, &lines)).map_err(failed)
    }
}

pub(crate) fn named(id: Option<&EntryId>) -> Json {
    id.map_or_else(Json::null, |id| Json::string(id.as_str()))
}
