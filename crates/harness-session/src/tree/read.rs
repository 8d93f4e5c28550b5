//! Reading a whole session.

use std::path::Path;

use harness_core::port::TornTail;
use harness_core::{CallId, EntryId, Json, JsonObject, RunId};
use serde::Deserialize;

use super::{Body, Node, Source, Text, Tree};
use crate::error::Error;
use crate::fold::{Item, Record};
use crate::jsonl::{Home, OpenOptions, Whole, scan_whole};
use crate::note::Note;

impl Tree {
    /// Reads the session at `path` without owning it and without changing it. A missing
    /// session is an error. Of the options, the limits and the key count.
    ///
    /// # Errors
    /// [`Error::NotFound`]; damage anywhere but in an unfinished last line, with line and byte offset; newer
    /// versions and other formats; limits; and those of the operating system.
    pub fn read(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let home = Home::of(path.as_ref(), false)?;
        match home.reader(options, None)? {
            Some(reader) => Self::of(scan_whole(reader, &home.path, options)?, &home.path),
            None => Err(Error::NotFound { path: home.path }),
        }
    }

    /// Reads a session from its lines. `named` stands for its path in errors.
    ///
    /// # Errors
    /// As of [`Tree::read`].
    pub fn parse(lines: &[u8], named: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        let named = named.as_ref();
        Self::of(scan_whole(lines, named, options)?, named)
    }

    pub(crate) fn of(whole: Whole, path: &Path) -> Result<Self, Error> {
        let Whole { scan, records, lines, first_line, pi } = whole;
        let source = match (pi, &scan.header) {
            (Some(version), _) => Source::Pi(version),
            (None, None) if !records.is_empty() => Source::Bare,
            (None, _) => Source::Harness,
        };
        let chain = scan.chain;
        let mut nodes = Vec::with_capacity(records.len());
        let mut texts = Vec::with_capacity(lines.len());
        for (place, text) in lines {
            let node = place.and_then(|place| {
                let id = chain.id(place)?;
                let parent = chain.parent(place).and_then(|parent| chain.id(parent));
                Some(node(id, parent, &text, records.get(place as usize)?))
            });
            let text = match &node {
                Some(Ok((node, true))) => wrapped(&node.id, node.parent.as_ref(), &text).map(Box::from),
                _ => Ok(text),
            };
            let read_error = |error: serde_json::Error| Error::Unstorable {
                path: path.into(),
                reason: crate::jsonl::reason(&error),
            };
            texts.push(Text { place, text: text.map_err(read_error)? });
            if let Some(node) = node {
                nodes.push(node.map_err(read_error)?.0);
            }
        }
        let index = nodes.iter().map(|node: &Node| node.id.clone()).zip(0..).collect();
        let torn_tail: Option<TornTail> = scan.loaded.torn_tail;
        Ok(Self {
            path: path.into(),
            source,
            header: scan.header,
            first_line,
            torn_tail,
            nodes,
            index,
            chain,
            records,
            lines: texts,
        })
    }
}

/// Fields common to all lines.
#[derive(Deserialize)]
struct Common {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    run_id: Option<RunId>,
}

#[derive(Deserialize)]
struct CompactionText {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    first_kept_id: Option<EntryId>,
    #[serde(default)]
    tokens_before: u64,
    #[serde(default)]
    tokens_after: Option<u64>,
    #[serde(default)]
    permanent: bool,
}

#[derive(Deserialize)]
struct CallText {
    call_id: CallId,
    state: String,
}

#[derive(Deserialize)]
struct EndText {
    stop: StopText,
}

#[derive(Deserialize)]
struct StopText {
    reason: String,
}

/// The entry of a line, and whether that line is a bare message.
fn node(
    id: EntryId,
    parent: Option<EntryId>,
    text: &str,
    record: &Record,
) -> Result<(Node, bool), serde_json::Error> {
    let common: Common = serde_json::from_str(text)?;
    let kind = common.kind.as_deref().unwrap_or_default();
    let other = || Body::Other { kind: kind.to_owned() };
    let body = match &record.item {
        _ if kind == "compaction" => serde_json::from_str(text).map_or_else(|_| other(), compaction),
        Item::Call(_) => serde_json::from_str(text).map_or_else(
            |_| other(),
            |line: CallText| Body::Call { call: line.call_id, finished: line.state == "finished" },
        ),
        Item::RunEnd(_) => serde_json::from_str(text)
            .map_or_else(|_| other(), |line: EndText| Body::RunEnd { reason: line.stop.reason }),
        Item::State(state) => Body::State { name: state.0.clone() },
        item @ (Item::Message(_) | Item::Compaction(_) | Item::Other) => {
            match (Note::read(kind, text), item) {
                (Some(Ok(note)), _) => Body::Note(note),
                (_, Item::Message(message)) => Body::Message(message.clone()),
                (_, _) => other(),
            }
        }
    };
    let bare = common.kind.is_none();
    Ok((Node { id, parent, at: common.at.unwrap_or_default(), run: common.run_id, body }, bare))
}

fn compaction(line: CompactionText) -> Body {
    Body::Compaction {
        summary: line.summary,
        first_kept: line.first_kept_id,
        tokens_before: line.tokens_before,
        tokens_after: line.tokens_after,
        permanent: line.permanent,
    }
}

/// The line of a bare message, in our form.
pub(crate) fn wrapped(
    id: &EntryId,
    parent: Option<&EntryId>,
    text: &str,
) -> Result<String, serde_json::Error> {
    let mut line = JsonObject::default();
    line.set("type", Json::string("message"));
    line.set("id", Json::string(id.as_str()));
    line.set("parent_id", super::named(parent));
    line.set("message", Json::parse(text)?);
    serde_json::to_string(&line)
}
