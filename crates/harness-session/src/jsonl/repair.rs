//! Taking damage out of a session file.

use harness_core::JsonObject;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::port::TranscriptRepair;
use serde::Serialize;

use super::home::io_error;
use super::line::{Header, Line, WrittenHeader, decode};
use super::options::OpenOptions;
use super::pairs::Pairs;
use super::read::{LineAt, Lines, Scanner};
use super::session::{FileSession, lock};
use crate::chain::{End, Parent};
use crate::error::{Action, Error};
use crate::seal::{Seal, sealed};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// Removed lines.
    pub quarantined: Vec<Quarantined>,
    /// Lines that an encrypted session lacks before its last one, as the numbers of its lines say.
    pub missing: u64,
    /// Entries whose parent was not there, and that now follow the entry before the damage.
    pub relinked: u64,
    /// Unmatched calls and results: lost results are marked `interrupted`, and results without a
    /// call are removed, too.
    pub repairs: Vec<TranscriptRepair>,
    /// Entries that the session holds now.
    pub kept: u64,
    /// File with the removed lines; absent if there are none.
    pub side_file: Option<PathBuf>,
}

impl RepairReport {
    /// Whether the file was valid and left unchanged.
    pub fn is_sound(&self) -> bool {
        self.quarantined.is_empty() && self.missing == 0 && self.relinked == 0 && self.repairs.is_empty()
    }
}

/// A removed line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Quarantined {
    /// The line, from 1, blank lines counted.
    pub line: u64,
    /// Offset of the line in bytes.
    pub offset: u64,
    /// Its bytes, its line feed included.
    pub bytes: u64,
    /// Reason for the removal.
    pub reason: String,
}

impl FileSession {
    /// Removes unreadable lines from a session file, so that it can be opened again, and makes its
    /// transcript legal: a call with a lost result gets one marked `interrupted`, and results
    /// without a call are removed.
    ///
    /// The lines go to the file `NAME.quarantine`, one JSON object for each: line, offset and
    /// reason, and the line itself as `text`, or as `hex` if it is binary. Entries that followed a
    /// lost one follow the entry before the damage. All other lines are unchanged; those of an
    /// encrypted session are encrypted and numbered again. The new file is complete, readable and
    /// on stable storage before it replaces the old one. A valid file is left unchanged.
    ///
    /// # Errors
    /// [`Error::Locked`] if the session has an owner, [`Error::NotFound`], [`Error::NewerVersion`]
    /// and [`Error::WrongFormat`] by its header, limits, and those of the operating system.
    pub fn repair(path: impl AsRef<Path>, options: &OpenOptions) -> Result<RepairReport, Error> {
        let mut owned = lock(path.as_ref())?;
        let home = &owned.home.clone();
        let content = home.content(options, u64::MAX)?;
        let mut repair = Repair::new(&home.path, options);
        let seal = repair.read(&content, options)?;
        let Repair { lines, lost_header, mut report, scanner, .. } = repair;
        let (scan, records) = scanner.finish(End::Last, seal.clone());
        let unstorable = |reason| Error::Unstorable { path: home.path.clone(), reason };
        let bad_json = |error: serde_json::Error| unstorable(super::line::reason(&error));
        let pairs = Pairs { chain: &scan.chain, records: &records };
        let mut lines = pairs.mend(lines, &mut report).map_err(bad_json)?;
        report.kept = lines.iter().filter(|line| line.is_entry).count() as u64;
        if report.is_sound() {
            return Ok(report);
        }
        let write_error = |source| io_error(Action::Replace, &home.path, source);
        if !report.quarantined.is_empty() {
            let aside = aside(&content, &report.quarantined).map_err(bad_json)?;
            let put = |side: &Path| options.disk.add(side, &aside);
            report.side_file = Some(home.set_aside(&aside, put)?);
        }
        if scan.header.is_none() && (lost_header || report.missing > 0) {
            let mut header = Header::new(&*home.stem);
            header.program = Some(options.program.clone());
            let header = serde_json::to_string(&WrittenHeader::from(&header)).map_err(bad_json)?;
            lines.insert(0, KeptLine::made(header));
        }
        let mut new = Vec::with_capacity(content.len());
        for line in lines {
            line.write(&content, seal.is_some(), &mut new);
        }
        if let Some(key) = options.key.as_ref().filter(|_| seal.is_some()) {
            new = sealed(&new, key).map_err(unstorable)?;
        }
        match &home.rows {
            Some(rows) => rows.replace(&new, false)?,
            None => owned.replace(&options.disk, &new).map_err(write_error)?,
        }
        Ok(report)
    }
}

/// A line that stays.
pub(super) struct KeptLine {
    /// The place of its entry.
    pub(super) place: Option<u32>,
    /// Whether it is an entry.
    pub(super) is_entry: bool,
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Its text; what is stored may be encrypted.
    pub(super) text: String,
    /// Whether its text is not what is stored.
    pub(super) is_new: bool,
}

impl KeptLine {
    /// A line of an entry that was not there.
    pub(super) fn made(text: String) -> Self {
        Self { place: None, is_entry: true, line: 0, offset: 0, bytes: 0, text, is_new: true }
    }

    fn new(place: Option<u32>, at: &LineAt, text: String, is_new: bool) -> Self {
        let LineAt { number: line, offset, bytes, .. } = *at;
        Self { place, is_entry: place.is_some(), line, offset, bytes, text, is_new }
    }

    /// Adds the line as it is stored, or its text.
    fn write(&self, content: &[u8], as_text: bool, out: &mut Vec<u8>) {
        if self.is_new || as_text {
            out.extend_from_slice(self.text.as_bytes());
        } else {
            out.extend_from_slice(piece(content, self.offset, self.bytes));
        }
        if out.last() != Some(&b'\n') {
            out.push(b'\n');
        }
    }
}

fn piece(content: &[u8], offset: u64, bytes: u64) -> &[u8] {
    let from = usize::try_from(offset).ok();
    let to = usize::try_from(offset.saturating_add(bytes)).ok();
    from.zip(to).and_then(|(from, to)| content.get(from..to)).unwrap_or_default()
}

/// The lines of one file, sorted into those that stay and those that go.
struct Repair<'p> {
    scanner: Scanner<'p>,
    lines: Vec<KeptLine>,
    report: RepairReport,
    /// The last entry before the last damage.
    before: Option<u32>,
    /// Whether the first line is lost, which may have been the header.
    lost_header: bool,
}

impl<'p> Repair<'p> {
    fn new(path: &'p Path, options: &OpenOptions) -> Self {
        Self {
            scanner: Scanner::new(path, options.limits),
            lines: Vec::new(),
            report: RepairReport::default(),
            before: None,
            lost_header: false,
        }
    }

    fn read(&mut self, content: &[u8], options: &OpenOptions) -> Result<Option<Arc<Seal>>, Error> {
        let mut lines = Lines::new(content, self.scanner.path(), options).past_gaps();
        while let Some(line) = lines.next()? {
            self.line(&line, lines.text())?;
        }
        self.report.missing = lines.missing.unwrap_or(0);
        Ok(lines.seal)
    }

    fn line(&mut self, line: &LineAt, text: &[u8]) -> Result<(), Error> {
        let before = self.scanner.chain().len();
        let reason = match self.scanner.take(line, text) {
            Ok(true) => {
                self.keep(line, text, before);
                return Ok(());
            }
            Ok(false) => "it was not written to its end".to_owned(),
            Err(Error::CorruptLine { reason, .. }) => match self.relinked(text) {
                Some(new) if matches!(self.scanner.take(line, new.as_bytes()), Ok(true)) => {
                    self.report.relinked = self.report.relinked.saturating_add(1);
                    self.lines.push(KeptLine::new(Some(before), line, new, true));
                    return Ok(());
                }
                Some(_) | None => reason,
            },
            Err(Error::LineTooLong { bytes, limit, .. }) => {
                format!("it has {bytes} bytes, the limit is {limit} bytes")
            }
            Err(error) => return Err(error),
        };
        self.lost_header |= !self.scanner.has_lines();
        self.before = self.scanner.chain().at(End::Last);
        let LineAt { number, offset, bytes, .. } = *line;
        self.report.quarantined.push(Quarantined { line: number, offset, bytes, reason });
        Ok(())
    }

    /// Keeps a line. A bare message is named by its line number, which may have changed, so it is
    /// converted to an entry.
    fn keep(&mut self, line: &LineAt, text: &[u8], before: u32) {
        let bare =
            matches!(decode(text), Ok(Line::Entry { id: None, record, .. }) if record.item.is_message());
        let new = if bare { self.wrapped(text) } else { None };
        let place = (self.scanner.chain().len() > before).then_some(before);
        let is_new = new.is_some();
        let text = new.unwrap_or_else(|| String::from_utf8_lossy(text).into_owned());
        self.lines.push(KeptLine::new(place, line, text, is_new));
    }

    fn wrapped(&self, text: &[u8]) -> Option<String> {
        let chain = self.scanner.chain();
        let place = chain.at(End::Last)?;
        let parent = chain.parent(place).and_then(|parent| chain.id(parent));
        crate::tree::wrapped(&chain.id(place)?, parent.as_ref(), std::str::from_utf8(text).ok()?).ok()
    }

    /// The line with the entry before the damage as its parent, when its own is not there.
    fn relinked(&mut self, text: &[u8]) -> Option<String> {
        let (Line::Entry { parent: Parent::Of(name), .. }
        | Line::Compaction { parent: Parent::Of(name), .. }) = decode(text).ok()?
        else {
            return None;
        };
        if self.scanner.find(&name).is_some() {
            return None;
        }
        let parent =
            if self.report.quarantined.is_empty() { self.scanner.chain().at(End::Last) } else { self.before };
        let parent = parent.and_then(|place| self.scanner.chain().id(place));
        let mut fields: JsonObject = serde_json::from_slice(text).ok()?;
        fields.set("parent_id", crate::tree::named(parent.as_ref()));
        serde_json::to_string(&fields).ok()
    }
}

/// A line in the side file.
#[derive(Serialize)]
struct Aside<'a> {
    #[serde(flatten)]
    place: &'a Quarantined,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn aside(from: &[u8], lines: &[Quarantined]) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    for place in lines {
        let (text, hex) = match str::from_utf8(piece(from, place.offset, place.bytes)) {
            Ok(text) => (Some(text), None),
            Err(_) => (None, Some(hex(piece(from, place.offset, place.bytes)))),
        };
        serde_json::to_writer(&mut out, &Aside { place, text, hex })?;
        out.push(b'\n');
    }
    Ok(out)
}
