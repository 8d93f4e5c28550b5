//! YAML events to a [`Document`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag};

use super::collection::key_text;
use super::fault::{YamlError, YamlFault};
use super::frame::{Anchor, Frame, Key, Shape, bytes_of};
use super::input::{self, Decoded};
use super::limits::YamlLimits;
use super::mask::Mask;
use super::scalar::{Scalar, resolve_plain};
use super::stop::Stop;
use super::tags::{self, Tagged};
use super::{expansion, layout, quoted};
use crate::document::{Bytes, Document, Entry, Kind, LossyReason, NodeId, Text, sort_properties};
use crate::number::push_number;

/// Reads one YAML document; a text without a value gives a document without a root.
///
/// Invalid UTF-8 becomes U+FFFD, and a byte order mark at the start is removed. `label` names the text
/// in places. With `forgiven`, errors that leave the rest readable are added to it, and reading
/// continues.
///
/// # Errors
/// The first error that stops reading.
pub fn read(
    text: impl Into<Vec<u8>>,
    label: impl Into<Arc<str>>,
    limits: &YamlLimits,
    forgiven: Option<&mut Vec<YamlError>>,
) -> Result<Document, YamlError> {
    let Decoded { text, lossy_from } = input::decode(text.into());
    let size = text.len() as u64;
    let limit = limits.bytes.min(YamlLimits::MAX_BYTES);
    if size > limit {
        let fault = YamlFault::TooLarge { what: "YAML text in bytes", limit, actual: size };
        return Err(YamlError { fault, place: None });
    }
    let mut document = built(&Arc::new(text), &label.into(), limits, forgiven)?;
    expansion::check(&document, limits)?;
    if let Some(at) = lossy_from.and_then(|at| u32::try_from(at).ok()) {
        document.push_lossy(Bytes { start: at, end: at }, LossyReason::InvalidUtf8);
    }
    Ok(document)
}

/// The document of a text. What the library refuses of it, although upstream reads it, is hidden from the library, and
/// the reading begins anew.
fn built(
    text: &Arc<String>,
    label: &Arc<str>,
    limits: &YamlLimits,
    forgiven: Option<&mut Vec<YamlError>>,
) -> Result<Document, YamlError> {
    let options = options(limits);
    let mut mask = Mask::new(text);
    loop {
        let document = Document::new(Arc::clone(text), Arc::clone(label));
        let mut builder = Builder::new(&mask, document, limits);
        builder.forgiven = forgiven.is_some().then(Vec::new);
        let outcome = builder.run(Parser::new_from_str_with_options(mask.text(), options.clone()));
        let (document, skipped) = (builder.document, builder.forgiven.unwrap_or_default());
        if let Err(Stop { parser: Some(error), .. }) = &outcome
            && mask.hide(error, &options)
        {
            continue;
        }
        if let Some(forgiven) = forgiven {
            forgiven.extend(skipped.into_iter().map(|stop| stop.error(&document)));
        }
        return match outcome {
            Ok(()) => Ok(document),
            Err(stop) => Err(stop.error(&document)),
        };
    }
}

fn options(limits: &YamlLimits) -> granit_parser::Options {
    let depth = limits.depth() as usize;
    let mut options = granit_parser::options! {
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        simple_key_max_lookahead: 16 << 10,
    };
    options.set_emit_comments(false);
    options
}

/// Makes a document of what a parser finds.
pub(super) struct Builder<'src> {
    pub(super) source: &'src str,
    pub(super) document: Document,
    frames: Vec<Frame<'src>>,
    /// Items of all open lists, the innermost last.
    items: Vec<NodeId>,
    /// Entries of all open mappings, the innermost last.
    entries: Vec<Entry>,
    anchors: HashMap<usize, Anchor>,
    documents: u32,
    mask: &'src Mask<'src>,
    /// Hidden scalars that came as scalars.
    revealed: usize,
    /// The text holds characters that plain and block scalars must not have.
    suspicious: bool,
    pub(super) max_values: u64,
    max_depth: usize,
    pub(super) merged: u64,
    /// Skipped errors; `None` if the first one stops reading.
    forgiven: Option<Vec<Stop>>,
}

/// Maximum number of errors of a text.
const MAX_FORGIVEN: usize = 100;

/// Mappings up to this size are searched one by one.
const SMALL_MAP: usize = 12;

impl<'src> Builder<'src> {
    fn new(mask: &'src Mask<'src>, document: Document, limits: &YamlLimits) -> Self {
        let source = mask.original();
        Self {
            source,
            document,
            frames: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            anchors: HashMap::new(),
            documents: 0,
            mask,
            revealed: 0,
            suspicious: input::is_suspicious(source),
            max_values: limits.values,
            max_depth: limits.depth() as usize,
            merged: 0,
            forgiven: None,
        }
    }

    fn run(&mut self, mut parser: Parser<'src, StrInput<'src>>) -> Result<(), Stop> {
        if let Some(at) = self.source.find('\0') {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            return Err(Stop::yaml(YamlFault::ControlCharacter(0), Bytes { start: at, end: at + 1 }));
        }
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(Stop::parser)?;
            self.event(event, &span)?;
        }
        match self.mask.hidden().first() {
            Some(hidden) if self.revealed != self.mask.hidden().len() => {
                let reason = "lines of a quoted value are indented too little".to_owned();
                Err(Stop::yaml(YamlFault::Syntax(reason), *hidden))
            }
            _ => Ok(()),
        }
    }

    /// Skips an error that leaves the rest readable, if errors are collected.
    fn forgive(&mut self, stop: Stop) -> Result<(), Stop> {
        match &mut self.forgiven {
            Some(forgiven) if forgiven.len() < MAX_FORGIVEN => {
                forgiven.push(stop);
                Ok(())
            }
            Some(_) | None => Err(stop),
        }
    }

    fn event(&mut self, event: Event<'src>, span: &Span) -> Result<(), Stop> {
        let bytes = bytes_of(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Stop::yaml(YamlFault::SecondDocument, bytes));
                }
                Ok(())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(Anchor::Closed(id)) => self.node(*id, bytes),
                Some(Anchor::Open) | None => {
                    self.forgive(Stop::yaml(YamlFault::Cycle, bytes))?;
                    let id = self.push(Kind::Null, bytes)?;
                    self.node(id, bytes)
                }
            },
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref();
                if tag.is_some()
                    && style == ScalarStyle::Plain
                    && !self.in_flow()
                    && resolve_plain(&text) != Scalar::Text
                {
                    layout::check_tag_line(self.source, bytes).map_err(|fault| Stop::yaml(fault, bytes))?;
                }
                self.scalar(self.mask.unmask(text), style, anchor, tag, bytes)
            }
            Event::SequenceStart(style, anchor, tag) => {
                let flow = style == StructureStyle::Flow;
                let at = (bytes, span.start.col());
                self.open(Frame::new(Shape::List, self.items.len(), anchor, flow, at), tag.as_deref())
            }
            Event::MappingStart(style, anchor, tag) => {
                let flow = style == StructureStyle::Flow;
                let at = (bytes, span.start.col());
                self.open(Frame::new(Shape::map(), self.entries.len(), anchor, flow, at), tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(bytes),
            Event::UnresolvedAlias(name) => {
                Err(Stop::yaml(YamlFault::Syntax(format!("unknown alias `*{name}`")), bytes))
            }
            Event::Anchor(id, name) => self.name_anchor(id, name, bytes),
            // The library may gain events; those it has beside the ones above carry no values.
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | _ => Ok(()),
        }
    }

    /// Reads a scalar of several lines where upstream and the parser differ.
    fn lines(
        &mut self,
        text: Cow<'src, str>,
        style: ScalarStyle,
        bytes: Bytes,
    ) -> Result<Cow<'src, str>, Stop> {
        let fail = |fault| Stop::yaml(fault, bytes);
        let written = self.source.get(bytes.start as usize..bytes.end as usize).unwrap_or_default();
        let quote = match style {
            ScalarStyle::SingleQuoted => '\'',
            ScalarStyle::DoubleQuoted => '"',
            ScalarStyle::Plain if self.in_flow() => {
                let block = self.frames.iter().rev().find(|frame| !frame.flow).map(|frame| frame.column);
                layout::check_flow_lines(written, block).map_err(fail)?;
                return Ok(text);
            }
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => return Ok(text),
        };
        if !written.contains(['\n', '\r']) {
            return Ok(text);
        }
        let inner = written.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        let folded = inner.and_then(|inner| quoted::fold(inner, quote)).map(Cow::from);
        if self.mask.is_hidden(bytes) {
            self.revealed += 1;
            return folded
                .ok_or_else(|| fail(YamlFault::Syntax("unknown escape in a quoted value".to_owned())));
        }
        Ok(folded.unwrap_or(text))
    }

    fn scalar(
        &mut self,
        text: Cow<'src, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        bytes: Bytes,
    ) -> Result<(), Stop> {
        let fail = |fault| Stop::yaml(fault, bytes);
        let plain = style == ScalarStyle::Plain;
        // The parser writes `~` for a value that is not there.
        let absent = plain && bytes.start == bytes.end;
        let text = if absent { Cow::Borrowed("") } else { self.lines(text, style, bytes)? };
        if plain && self.document.len() == 0 && self.entries.is_empty() {
            layout::check_first_word(self.source, bytes).map_err(fail)?;
        }
        if absent && tag.is_none() && anchor == 0 && self.wants_key() && !self.in_flow() {
            layout::check_absent_key(self.source, bytes).map_err(fail)?;
        }
        if self.suspicious
            && !matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted)
            && let Some(c) = input::forbidden(&text)
        {
            return Err(fail(YamlFault::ControlCharacter(c.into())));
        }
        let tagged = match tag {
            Some(tag) => match tags::scalar(tag, &text, absent) {
                Ok(tagged) => tagged,
                Err(fault) => {
                    self.forgive(fail(fault))?;
                    Tagged::Scalar(Scalar::Text)
                }
            },
            None if plain && text == "<<" => Tagged::Merge,
            None if plain => Tagged::Scalar(resolve_plain(&text)),
            None => Tagged::Scalar(Scalar::Text),
        };
        if self.wants_key() {
            return self.scalar_key(tagged, text, anchor, bytes);
        }
        let kind = match tagged {
            Tagged::Scalar(scalar) => self.kind(scalar, text, bytes)?,
            // Only a key merges; elsewhere `<<` is a string.
            Tagged::Merge => Kind::Text(self.text(text)),
            Tagged::EmptyList => Kind::List(Vec::new()),
            Tagged::EmptyMap => Kind::Map(Vec::new()),
        };
        let id = self.push(kind, bytes)?;
        if anchor != 0 {
            self.anchors.insert(anchor, Anchor::Closed(id));
        }
        self.node(id, bytes)
    }

    /// Takes a scalar for the key of the next entry.
    fn scalar_key(
        &mut self,
        tagged: Tagged,
        text: Cow<'src, str>,
        anchor: usize,
        bytes: Bytes,
    ) -> Result<(), Stop> {
        // In a block mapping, `? <<` announces an ordinary key.
        let announced =
            tagged == Tagged::Merge && !self.in_flow() && layout::is_announced(self.source, bytes);
        let tagged = if announced { Tagged::Scalar(Scalar::Text) } else { tagged };
        if anchor != 0
            && let Tagged::Scalar(scalar) = tagged
        {
            // The anchor names the typed value, not the key's text.
            let kind = self.kind(scalar, text.clone(), bytes)?;
            let id = self.push(kind, bytes)?;
            self.anchors.insert(anchor, Anchor::Closed(id));
        }
        if let Tagged::Scalar(Scalar::Number { value, lossy: true }) = tagged
            && value.is_finite()
            && anchor == 0
        {
            self.document.push_lossy(bytes, LossyReason::Rounded);
        }
        let key = Self::key(tagged, text, bytes)?;
        self.set_key(key);
        Ok(())
    }

    fn kind(&mut self, scalar: Scalar, text: Cow<'src, str>, bytes: Bytes) -> Result<Kind, Stop> {
        Ok(match scalar {
            Scalar::Null => Kind::Null,
            Scalar::Bool(value) => Kind::Bool(value),
            Scalar::Number { value, lossy } => {
                if lossy {
                    let reason =
                        if value.is_finite() { LossyReason::Rounded } else { LossyReason::NotFinite };
                    self.document.push_lossy(bytes, reason);
                }
                Kind::Number(value)
            }
            Scalar::Instant(instant) => {
                self.document.push_lossy(bytes, LossyReason::Instant);
                Kind::Instant(instant)
            }
            Scalar::InstantOutOfRange => {
                self.forgive(Stop::yaml(YamlFault::InstantOutOfRange(text.to_string()), bytes))?;
                Kind::Text(self.text(text))
            }
            Scalar::Text => Kind::Text(self.text(text)),
        })
    }

    /// A mapping key as text: keys are typed first and then turned into strings.
    fn key(tagged: Tagged, text: Cow<'src, str>, bytes: Bytes) -> Result<Key<'src>, Stop> {
        let name = match tagged {
            Tagged::Merge => return Ok(Key::Merge { bytes }),
            Tagged::Scalar(Scalar::Text) => text,
            Tagged::Scalar(Scalar::Null) => "null".into(),
            Tagged::Scalar(Scalar::Bool(value)) => if value { "true" } else { "false" }.into(),
            Tagged::Scalar(Scalar::Number { value, .. }) => {
                let mut written = String::new();
                push_number(&mut written, value);
                if written == text { text } else { written.into() }
            }
            Tagged::Scalar(Scalar::Instant(_) | Scalar::InstantOutOfRange) => {
                return Err(Stop::yaml(YamlFault::ComplexKey("a date"), bytes));
            }
            Tagged::EmptyList => return Err(Stop::yaml(YamlFault::ComplexKey("a list"), bytes)),
            Tagged::EmptyMap => return Err(Stop::yaml(YamlFault::ComplexKey("a mapping"), bytes)),
        };
        Ok(Key::Named { name, bytes })
    }

    /// A key that is an alias of a value read before.
    fn alias_key(&self, id: NodeId, bytes: Bytes) -> Result<Key<'src>, Stop> {
        let complex = match self.document.kind(id) {
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Instant(_) => "a date",
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                let name = self.document.display_text(id).into();
                return Ok(Key::Named { name, bytes });
            }
        };
        Err(Stop::yaml(YamlFault::ComplexKey(complex), bytes))
    }

    /// Upstream defines the anchor of a list or mapping again at its end, so a name must not be used
    /// twice in one nest.
    fn name_anchor(&mut self, id: usize, name: Cow<'src, str>, bytes: Bytes) -> Result<(), Stop> {
        if self.frames.iter().any(|frame| frame.anchor != id && frame.anchor_name.as_ref() == Some(&name)) {
            let reason = format!("anchor `&{name}` is inside the value of another `&{name}`");
            return Err(Stop::yaml(YamlFault::Syntax(reason), bytes));
        }
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.anchor == id) {
            frame.anchor_name = Some(name);
        }
        Ok(())
    }

    fn in_flow(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.flow)
    }

    fn wants_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { shape: Shape::Map { key: None, .. }, .. }))
    }

    fn set_key(&mut self, new: Key<'src>) {
        if let Some(Frame { shape: Shape::Map { key, .. }, content_end, .. }) = self.frames.last_mut() {
            let (Key::Named { bytes, .. } | Key::Merge { bytes }) = &new;
            *content_end = bytes.end.max(*content_end);
            *key = Some(new);
        }
    }

    fn open(&mut self, mut frame: Frame<'src>, tag: Option<&Tag>) -> Result<(), Stop> {
        let bytes = frame.bytes;
        let is_list = matches!(frame.shape, Shape::List);
        if self.wants_key() {
            let what = if is_list { "a list" } else { "a mapping" };
            return Err(Stop::yaml(YamlFault::ComplexKey(what), bytes));
        }
        if self.frames.len() >= self.max_depth {
            let limit = self.max_depth as u64;
            return Err(Stop::too_large("nesting in levels", limit, limit + 1, bytes));
        }
        if let Some(tag) = tag {
            let known = tags::known(tag).map_err(|fault| Stop::yaml(fault, bytes))?;
            if !known.fits_collection(is_list) {
                return Err(Stop::yaml(YamlFault::UnknownTag(tag.original()), bytes));
            }
            frame.tag = Some((known, tag.original()));
        }
        if frame.anchor != 0 {
            self.anchors.insert(frame.anchor, Anchor::Open);
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, end: Bytes) -> Result<(), Stop> {
        let Some(Frame { shape, base, anchor, tag, bytes, content_end, flow, .. }) = self.frames.pop() else {
            return Ok(());
        };
        // A block has no end of its own: its event comes with the next value.
        let last = if flow { end.end } else { content_end };
        let bytes = Bytes { start: bytes.start, end: last.max(bytes.end) };
        if matches!(shape, Shape::List) && !flow {
            let last = self.items.get(base..).and_then(<[NodeId]>::last).map(|id| self.document.bytes(*id));
            layout::check_last_entry(self.source, last, end).map_err(|fault| Stop::yaml(fault, end))?;
        }
        let mut kind = match shape {
            Shape::List => Kind::List(self.items.drain(base.min(self.items.len())..).collect()),
            Shape::Map { .. } => {
                let base = base.min(self.entries.len());
                let mut entries: Vec<Entry> = self.entries.drain(base..).collect();
                sort_properties(&mut entries, self.source);
                Kind::Map(entries)
            }
        };
        if let Some((known, written)) = tag {
            kind = self
                .tagged_collection(known, kind)
                .ok_or_else(|| Stop::yaml(YamlFault::TagMismatch(written), bytes))?;
        }
        let id = self.push(kind, bytes)?;
        if anchor != 0 {
            self.anchors.insert(anchor, Anchor::Closed(id));
        }
        self.node(id, bytes)
    }

    fn push(&mut self, kind: Kind, bytes: Bytes) -> Result<NodeId, Stop> {
        let count = self.document.len() as u64 + self.merged;
        if count >= self.max_values {
            return Err(Stop::too_large("count of values", self.max_values, count + 1, bytes));
        }
        Ok(self.document.push(kind, bytes))
    }

    /// Puts a finished value where it belongs: into the open list, under the open key, or at the root.
    fn node(&mut self, id: NodeId, bytes: Bytes) -> Result<(), Stop> {
        let Some(frame) = self.frames.last_mut() else {
            self.document.set_root(id);
            return Ok(());
        };
        if bytes.start < bytes.end {
            frame.content_end = bytes.end;
        }
        match &mut frame.shape {
            Shape::List => {
                self.items.push(id);
                Ok(())
            }
            Shape::Map { key, .. } => match key.take() {
                Some(Key::Named { name, bytes: key }) => {
                    if frame.flow || !self.mask.hidden().is_empty() {
                        layout::check_key_line(self.source, key, bytes)
                            .map_err(|fault| Stop::yaml(fault, key))?;
                    }
                    self.entry(name, key, id)
                }
                Some(Key::Merge { bytes }) => match self.merge(id, bytes) {
                    Err(stop) if matches!(*stop.fault, YamlFault::MergeSource) => self.forgive(stop),
                    outcome => outcome,
                },
                None => {
                    let key = self.alias_key(id, bytes)?;
                    self.set_key(key);
                    Ok(())
                }
            },
        }
    }

    fn entry(&mut self, name: Cow<'src, str>, key_bytes: Bytes, value: NodeId) -> Result<(), Stop> {
        if let Some(at) = self.find(&name) {
            let Some(known) = self.entries.get_mut(at) else { return Ok(()) };
            if !known.merged {
                let first = known.key_bytes;
                let first_line = self.document.place_of(first).line;
                let fault = YamlFault::DuplicateKey { key: name.into_owned(), first_line };
                return self.forgive(Stop::yaml(fault, key_bytes));
            }
            // The explicit key takes the merged one's position.
            known.value = value;
            known.key_bytes = key_bytes;
            known.merged = false;
            return Ok(());
        }
        self.add(name, key_bytes, value, false);
        Ok(())
    }

    pub(super) fn add(&mut self, name: Cow<'src, str>, key_bytes: Bytes, value: NodeId, merged: bool) {
        if name == "__proto__" {
            self.document.push_lossy(key_bytes, LossyReason::Proto);
        }
        let key = self.text(name.clone());
        let at = self.entries.len();
        self.entries.push(Entry { key, key_bytes, value, merged });
        let Some(Frame { shape: Shape::Map { index, .. }, base, .. }) = self.frames.last_mut() else {
            return;
        };
        if !index.is_empty() {
            index.insert(name, at);
        } else if at - *base >= SMALL_MAP {
            for (at, entry) in self.entries.iter().enumerate().skip(*base) {
                index.insert(key_text(self.source, entry), at);
            }
        }
    }

    /// The position of a key of the innermost mapping in the shared stack of entries.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let Some(Frame { shape: Shape::Map { index, .. }, base, .. }) = self.frames.last() else {
            return None;
        };
        if !index.is_empty() {
            return index.get(name).copied();
        }
        let entries = self.entries.get(*base..)?;
        entries.iter().position(|entry| self.document.resolve(&entry.key) == name).map(|at| at + base)
    }

    /// A string node: a part of the source where the parser borrowed it from there.
    fn text(&self, text: Cow<'src, str>) -> Text {
        match text {
            Cow::Borrowed(part) => {
                let offset = (part.as_ptr() as usize).wrapping_sub(self.mask.text().as_ptr() as usize);
                let end = offset.wrapping_add(part.len());
                match (u32::try_from(offset), u32::try_from(end)) {
                    (Ok(start), Ok(end)) if self.source.get(start as usize..end as usize) == Some(part) => {
                        Text::Source(Bytes { start, end })
                    }
                    _ => Text::Shared(part.into()),
                }
            }
            Cow::Owned(text) => Text::Shared(text.into()),
        }
    }
}
