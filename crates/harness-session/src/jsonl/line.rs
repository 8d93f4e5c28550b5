//! The lines of a session file, version 1.

use std::borrow::Cow;
use std::sync::Arc;

use harness_core::message::{Block, Message};
use harness_core::port::{Entry, EntryHead};
use harness_core::tool::RetryClass;
use harness_core::{CallId, EntryId, Json, SessionId, StopReason, Time};
use serde::de::IgnoredAny;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::compaction::{CompactionLine, WrittenCompaction};
use crate::chain::{Parent, clip};
use crate::fold::{CallNote, Item, Record};
use crate::note::{Note, branch_summary};

/// The name of the format, in the header.
pub(crate) const FORMAT: &str = "harness.session";

/// The version that is written, and the newest that is read.
///
/// | version | since | what it is |
/// |---|---|---|
/// | 1 | 0.1 | header, `message`, `call`, `compaction`, `state`, `run_end`; other types are kept and passed over |
pub const FORMAT_VERSION: u32 = 1;

/// Content of the first line of a session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The session's name.
    pub id: SessionId,
    /// When the first entry was written, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// The program that made the file.
    #[serde(default, rename = "harness", skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Working directory of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The hash of the descriptor under which the session was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<String>,
    /// The caller's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

impl Header {
    /// The header of a session of this name, everything else left out.
    pub fn new(id: impl Into<SessionId>) -> Self {
        Self {
            id: id.into(),
            created_at: String::new(),
            program: None,
            cwd: None,
            parent_session: None,
            descriptor: None,
            meta: None,
        }
    }

    /// The hash of the descriptor under which the session was started. Programs before 0.2 kept it in `meta`.
    pub fn descriptor_hash(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            descriptor_hash: String,
        }
        let earlier = || Some(self.meta.as_ref()?.to::<Meta>().ok()?.descriptor_hash);
        self.descriptor.clone().or_else(earlier).filter(|hash| !hash.is_empty())
    }
}

/// A program by name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

impl Program {
    /// A program by name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// A line that was read.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    Header(Header),
    Entry {
        /// Absent on bare messages and on foreign lines.
        id: Option<Cow<'a, str>>,
        parent: Parent<'a>,
        record: Record,
    },
    Compaction {
        id: Cow<'a, str>,
        parent: Parent<'a>,
        line: Box<CompactionLine>,
    },
}

/// Reason why a line was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Damaged, or not a session line.
    Damaged(String),
    /// A header of a newer version.
    Newer(u64),
    /// A header of another format; what it says.
    Foreign(String),
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(reason(&error))
    }
}

/// The error without the values it quotes: they may be anything that a transcript holds.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let told: String = match (text.split_once("invalid "), text.rsplit_once(", expected ")) {
        (Some((before, found)), Some((_, wanted))) => {
            let kind = found.split(['`', '"']).next().unwrap_or_default().trim_end();
            format!("{before}invalid {kind}, expected {wanted}")
        }
        _ => text.to_owned(),
    };
    let told: String = told.chars().take(200).collect();
    if error.column() == 0 { told } else { format!("{told}, at byte {} of the line", error.column()) }
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    role: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct HeaderTag<'a> {
    #[serde(borrow, default)]
    format: Option<Cow<'a, str>>,
    #[serde(default)]
    version: Option<u64>,
}

#[derive(Deserialize)]
struct Link<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "parent")]
    parent_id: Parent<'a>,
    #[serde(default)]
    run_id: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Foreign<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "parent")]
    parent_id: Parent<'a>,
}

#[derive(Deserialize)]
struct MessageLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "parent")]
    parent_id: Parent<'a>,
    #[serde(default)]
    run_id: Option<IgnoredAny>,
    message: Message,
}

#[derive(Deserialize)]
struct CallLine {
    call_id: CallId,
    state: CallState,
    attempt: u32,
    retry_class: RetryClass,
    #[serde(default)]
    result: Option<Arc<Message>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallState {
    Started,
    Finished,
}

#[derive(Deserialize)]
struct StateLine {
    name: String,
    state: Json,
}

#[derive(Deserialize)]
struct EndLine {
    stop: EndStop,
}

#[derive(Deserialize)]
struct EndStop {
    reason: StopReason,
}

#[derive(Deserialize)]
struct SummaryLine<'a> {
    #[serde(borrow)]
    summary: Cow<'a, str>,
}

/// Absent and null differ: a null parent makes a first entry.
fn parent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Parent<'de>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let text = Option::<Text<'de>>::deserialize(deserializer)?;
    Ok(text.map_or(Parent::Root, |text| Parent::Of(text.0)))
}

/// Reads one line, white space around it taken off.
pub(crate) fn decode(text: &[u8]) -> Result<Line<'_>, Unreadable> {
    // Serde would also take a list for a struct.
    if text.first() != Some(&b'{') {
        return Err(Unreadable::Damaged("a JSON object was expected".to_owned()));
    }
    // The form in which we write messages, by far the most lines: no look ahead for the type.
    if text.starts_with(br#"{"type":"message","#) {
        return message(text);
    }
    let tag: Tag<'_> = serde_json::from_slice(text)?;
    match (tag.kind.as_deref(), tag.role) {
        (Some("session"), _) => header(text),
        (Some("message"), _) => message(text),
        (Some("call"), _) => call(text),
        (Some("state"), _) => {
            let line = serde_json::from_slice::<StateLine>(text);
            entry(text, line.map_or(Item::Other, |line| Item::State(Box::new((line.name, line.state)))))
        }
        (Some("run_end"), _) => {
            let line = serde_json::from_slice::<EndLine>(text);
            entry(text, Item::RunEnd(line.ok().map(|line| line.stop.reason)))
        }
        (Some("branch_summary"), _) => {
            let line: SummaryLine<'_> = serde_json::from_slice(text)?;
            entry(text, Item::Message(branch_summary(&line.summary)))
        }
        (Some("compaction"), _) => {
            let line = serde_json::from_slice(text)?;
            let Link { id, parent_id, .. } = serde_json::from_slice(text)?;
            Ok(Line::Compaction { id, parent: parent_id, line })
        }
        (Some(_), _) => {
            let line: Foreign<'_> = serde_json::from_slice(text)?;
            Ok(Line::Entry {
                id: line.id,
                parent: line.parent_id,
                record: Record { line: 0, in_run: false, item: Item::Other },
            })
        }
        (None, Some(_)) => {
            let message: Message = serde_json::from_slice(text)?;
            placed(&message).map_err(Unreadable::Damaged)?;
            Ok(Line::Entry {
                id: None,
                parent: Parent::Unsaid,
                record: Record { line: 0, in_run: false, item: Item::Message(Arc::new(message)) },
            })
        }
        (None, None) => Err(Unreadable::Damaged("it has neither a `type` nor a `role`".to_owned())),
    }
}

fn header(text: &[u8]) -> Result<Line<'_>, Unreadable> {
    let tag: HeaderTag<'_> = serde_json::from_slice(text)?;
    match (tag.format.as_deref(), tag.version) {
        (Some(FORMAT), Some(version)) if version == u64::from(FORMAT_VERSION) => {
            Ok(Line::Header(serde_json::from_slice(text)?))
        }
        (Some(FORMAT), Some(version)) if version > u64::from(FORMAT_VERSION) => {
            Err(Unreadable::Newer(version))
        }
        (Some(FORMAT), _) => Err(Unreadable::Damaged("the header has no version".to_owned())),
        (Some(other), _) => Err(Unreadable::Foreign(format!("format `{}`", clip(other)))),
        (None, version) => Err(Unreadable::Foreign(match version {
            Some(version) => format!("a session tree of pi, version {version}"),
            None => "a session without a `format`".to_owned(),
        })),
    }
}

fn message(text: &[u8]) -> Result<Line<'_>, Unreadable> {
    // One check of the whole line is cheaper than one of each of its strings. A line that fails it may still
    // be read: what is passed over may be anything.
    let line: MessageLine<'_> = match str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text)?,
        Err(_) => serde_json::from_slice(text)?,
    };
    placed(&line.message).map_err(Unreadable::Damaged)?;
    Ok(Line::Entry {
        id: Some(line.id),
        parent: line.parent_id,
        record: Record {
            line: 0,
            in_run: line.run_id.is_some(),
            item: Item::Message(Arc::new(line.message)),
        },
    })
}

fn call(text: &[u8]) -> Result<Line<'_>, Unreadable> {
    let line: CallLine = serde_json::from_slice(text)?;
    let result = match line.state {
        CallState::Started => None,
        CallState::Finished => line.result,
    };
    let note = CallNote { call: line.call_id, attempt: line.attempt, class: line.retry_class, result };
    entry(text, Item::Call(Box::new(note)))
}

fn entry(text: &[u8], item: Item) -> Result<Line<'_>, Unreadable> {
    let link: Link<'_> = serde_json::from_slice(text)?;
    Ok(Line::Entry {
        id: Some(link.id),
        parent: link.parent_id,
        record: Record { line: 0, in_run: link.run_id.is_some(), item },
    })
}

/// Checks that blocks that belong to an assistant message alone are in one.
pub(crate) fn placed(message: &Message) -> Result<(), String> {
    if message.as_assistant().is_some() {
        return Ok(());
    }
    let misplaced = message.content().iter().find_map(|block| match block {
        Block::ToolCall(_) => Some("toolCall"),
        Block::Thinking(_) => Some("thinking"),
        Block::Refusal(_) => Some("refusal"),
        Block::Text(_)
        | Block::Image(_)
        | Block::File(_)
        | Block::Audio(_)
        | Block::Error(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => None,
    });
    match misplaced {
        Some(kind) => Err(format!("a {} message cannot hold a `{kind}` block", message.role())),
        None => Ok(()),
    }
}

/// Serialized form of an entry.
pub(crate) struct Written<'a> {
    pub(crate) id: &'a EntryId,
    pub(crate) parent: Option<&'a EntryId>,
    pub(crate) head: &'a EntryHead,
    pub(crate) entry: &'a Entry<'a>,
    /// Given for a compaction.
    pub(crate) compaction: Option<&'a WrittenCompaction>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let kind = match self.entry {
            Entry::Message(_) => "message",
            Entry::CallStarted { .. } | Entry::CallFinished { .. } => "call",
            Entry::State { .. } => "state",
            Entry::RunEnd { .. } => "run_end",
            Entry::Compaction { .. } => "compaction",
            _ => {
                return Err(S::Error::custom("this version has no line for this kind of entry"));
            }
        };
        start(&mut map, kind, self.id, self.parent, self.head)?;
        match self.entry {
            Entry::Message(message) => map.serialize_entry("message", message)?,
            Entry::CallStarted { call, attempt, class } => {
                write_call(&mut map, call, CallState::Started, *attempt, **class)?;
            }
            Entry::CallFinished { call, attempt, class, result } => {
                write_call(&mut map, call, CallState::Finished, *attempt, **class)?;
                map.serialize_entry("result", result)?;
            }
            Entry::State { name, state } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("state", state)?;
            }
            Entry::RunEnd { stop, usage } => {
                map.serialize_entry("stop", stop)?;
                map.serialize_entry("usage", usage)?;
            }
            Entry::Compaction { note, .. } => {
                if let Some(compaction) = self.compaction {
                    compaction.write(&mut map, note)?;
                }
            }
            _ => {}
        }
        map.end()
    }
}

/// Writes what all lines begin with.
fn start<M: SerializeMap>(
    map: &mut M,
    kind: &str,
    id: &EntryId,
    parent: Option<&EntryId>,
    head: &EntryHead,
) -> Result<(), M::Error> {
    map.serialize_entry("type", kind)?;
    map.serialize_entry("id", id)?;
    map.serialize_entry("parent_id", &parent)?;
    map.serialize_entry("at", &Iso(head.at))?;
    if let Some(run) = &head.run {
        map.serialize_entry("run_id", run)?;
        map.serialize_entry("turn", &head.turn)?;
    }
    if let Some(turn) = &head.turn_id {
        map.serialize_entry("turn_id", turn)?;
    }
    Ok(())
}

/// Serialized form of a note.
pub(crate) struct WrittenNote<'a> {
    pub(crate) id: &'a EntryId,
    pub(crate) parent: Option<&'a EntryId>,
    pub(crate) head: &'a EntryHead,
    pub(crate) note: &'a Note,
}

impl Serialize for WrittenNote<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        start(&mut map, self.note.kind(), self.id, self.parent, self.head)?;
        self.note.write(&mut map)?;
        map.end()
    }
}

fn write_call<M: SerializeMap>(
    map: &mut M,
    call: &CallId,
    state: CallState,
    attempt: u32,
    class: RetryClass,
) -> Result<(), M::Error> {
    map.serialize_entry("call_id", call)?;
    map.serialize_entry("state", &state)?;
    map.serialize_entry("attempt", &attempt)?;
    map.serialize_entry("retry_class", &class)
}

struct Iso(Time);

impl Serialize for Iso {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The header line.
#[derive(Serialize)]
pub(crate) struct WrittenHeader<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
    version: u32,
    id: &'a SessionId,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<&'a str>,
    #[serde(rename = "harness", skip_serializing_if = "Option::is_none")]
    program: Option<&'a Program>,
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Json>,
}

impl<'a> From<&'a Header> for WrittenHeader<'a> {
    fn from(header: &'a Header) -> Self {
        Self {
            kind: "session",
            format: FORMAT,
            version: FORMAT_VERSION,
            id: &header.id,
            created_at: &header.created_at,
            cwd: header.cwd.as_deref(),
            parent_session: header.parent_session.as_deref(),
            program: header.program.as_ref(),
            descriptor: header.descriptor.as_deref(),
            meta: header.meta.as_ref(),
        }
    }
}

/// The header line, its line feed included.
pub(crate) fn header_line(header: &Header) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::new();
    encode(&WrittenHeader::from(header), &mut line)?;
    Ok(line)
}

/// Appends one line with its line feed to `buffer` and returns its length without it.
pub(crate) fn encode<T: Serialize>(line: &T, buffer: &mut Vec<u8>) -> Result<usize, serde_json::Error> {
    let start = buffer.len();
    serde_json::to_writer(&mut *buffer, line)?;
    let written = buffer.get_mut(start..).unwrap_or_default();
    let length = written.len();
    // Raw JSON of a caller may be spread over lines. A line break is never inside a string, so it is white
    // space, and a blank does as well.
    if written.contains(&b'\n') || written.contains(&b'\r') {
        for byte in written.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    buffer.push(b'\n');
    Ok(length)
}
