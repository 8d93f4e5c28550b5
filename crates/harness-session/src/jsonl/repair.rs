//! Taking damage out of a session file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use harness_core::port::TranscriptRepair;
use serde::Serialize;

use super::line::{Header, Line, Program, WrittenHeader, decode, encode};
use super::lock::{hold_new, release};
use super::options::{Limits, OpenOptions};
use super::pairs::Pairs;
use super::read::{self, LineAt, Lines, Scanner};
use super::session::{JsonlSession, beside, io_error, lock};
use crate::chain::{End, Parent};
use crate::disk::{Disk, replace_file};
use crate::error::{Action, Error};
use crate::fields::Fields;

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// Removed lines.
    pub quarantined: Vec<Quarantined>,
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
        self.quarantined.is_empty() && self.relinked == 0 && self.repairs.is_empty()
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

impl JsonlSession {
    /// Removes unreadable lines from a session file, so that it can be opened again, and makes its
    /// transcript legal: a call with a lost result gets one marked `interrupted`, and results
    /// without a call are removed.
    ///
    /// The lines go to the file `NAME.quarantine`, one JSON object for each: line, offset and
    /// reason, and the line itself as `text`, or as `hex` if it is binary. Entries that followed a
    /// lost one follow the entry before the damage. All other lines are unchanged. The new file is
    /// complete, readable and on stable storage before it replaces the old one. A valid file is
    /// left unchanged.
    ///
    /// # Errors
    /// [`Error::Locked`] if the session has an owner, [`Error::NotFound`], [`Error::NewerVersion`]
    /// and [`Error::WrongFormat`] by its header, limits, and those of the operating system.
    pub fn repair(path: impl AsRef<Path>, options: &OpenOptions) -> Result<RepairReport, Error> {
        let path = path.as_ref();
        let owned = lock(path)?;
        let (real, file) = (&owned.real, &owned.file);
        read::check_size(file, path, options.limits)?;
        let mut repair = Repair::new(path, options.limits);
        repair.read(file)?;
        let Repair { lines, header, mut report, scanner, .. } = repair;
        let (scan, records) = scanner.finish(End::Last);
        let read_error = |source| io_error(Action::Read, path, source);
        let pairs = Pairs { file, chain: &scan.chain, records: &records };
        let lines = pairs.mend(lines, &mut report).map_err(read_error)?;
        report.kept = lines.iter().filter(|line| line.is_entry).count() as u64;
        if report.is_sound() {
            return Ok(report);
        }
        let write_error = |source| io_error(Action::Replace, path, source);
        if !report.quarantined.is_empty() {
            let side = beside(real, ".quarantine");
            set_aside(&options.disk, file, &report.quarantined, &side).map_err(write_error)?;
            report.side_file = Some(side);
        }
        let first = (scan.header.is_none() && header).then(|| first_line(real, &options.program));
        let write = |new: &mut File| -> io::Result<()> {
            hold_new(new)?;
            let mut new = BufWriter::new(new);
            if let Some(first) = &first {
                let mut line = Vec::new();
                encode(&WrittenHeader::from(first), &mut line)?;
                new.write_all(&line)?;
            }
            lines.iter().try_for_each(|line| line.kept.write(file, &mut new))?;
            new.flush()
        };
        release(&replace_file(real, write).map_err(write_error)?);
        Ok(report)
    }
}

/// A line that stays, with where it was.
pub(super) struct KeptLine {
    /// The place of its entry.
    pub(super) place: Option<u32>,
    /// Whether it is an entry.
    pub(super) is_entry: bool,
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) kept: Kept,
}

impl KeptLine {
    /// A line of an entry that was not there.
    pub(super) fn made(text: String) -> Self {
        Self { place: None, is_entry: true, line: 0, offset: 0, bytes: 0, kept: Kept::New(text) }
    }

    fn new(place: Option<u32>, at: &LineAt, kept: Kept) -> Self {
        let LineAt { number: line, offset, bytes, .. } = *at;
        Self { place, is_entry: place.is_some(), line, offset, bytes, kept }
    }
}

/// The text of a line that stays.
pub(super) enum Kept {
    /// These bytes of the old file.
    Old { offset: u64, bytes: u64, whole: bool },
    /// With another parent, or in our form.
    New(String),
}

impl Kept {
    pub(super) fn write(&self, old: &File, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Old { offset, bytes, whole } => {
                out.write_all(&piece(old, *offset, *bytes)?)?;
                if *whole { Ok(()) } else { out.write_all(b"\n") }
            }
            Self::New(text) => writeln!(out, "{text}"),
        }
    }
}

fn piece(file: &File, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut piece, offset)?;
    Ok(piece)
}

/// The lines of one file, sorted into those that stay and those that go.
struct Repair<'p> {
    scanner: Scanner<'p>,
    lines: Vec<KeptLine>,
    report: RepairReport,
    /// The last entry before the last damage.
    before: Option<u32>,
    /// Whether the first line is lost, which may have been the header.
    header: bool,
}

impl<'p> Repair<'p> {
    fn new(path: &'p Path, limits: Limits) -> Self {
        Self {
            scanner: Scanner::new(path, limits),
            lines: Vec::new(),
            report: RepairReport::default(),
            before: None,
            header: false,
        }
    }

    fn read(&mut self, file: &File) -> Result<(), Error> {
        let path = self.scanner.path();
        let mut lines = Lines::new(file, self.scanner.limits().line_bytes);
        while let Some(line) = lines.next().map_err(|source| io_error(Action::Read, path, source))? {
            self.line(&line, lines.text())?;
        }
        Ok(())
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
                    self.lines.push(KeptLine::new(Some(before), line, Kept::New(new)));
                    return Ok(());
                }
                Some(_) | None => reason,
            },
            Err(Error::LineTooLong { bytes, limit, .. }) => {
                format!("it has {bytes} bytes, the limit is {limit} bytes")
            }
            Err(error) => return Err(error),
        };
        self.header |= !self.scanner.has_lines();
        self.before = self.scanner.chain().at(End::Last);
        let LineAt { number, offset, bytes, .. } = *line;
        self.report.quarantined.push(Quarantined { line: number, offset, bytes, reason });
        Ok(())
    }

    /// Keeps a line. A bare message is named by its line number, which may have changed, so it is
    /// converted to an entry.
    fn keep(&mut self, line: &LineAt, text: &[u8], before: u32) {
        let own = Kept::Old { offset: line.offset, bytes: line.bytes, whole: line.whole };
        let bare =
            matches!(decode(text), Ok(Line::Entry { id: None, record, .. }) if record.item.is_message());
        let new = if bare { self.wrapped(text) } else { None };
        let place = (self.scanner.chain().len() > before).then_some(before);
        self.lines.push(KeptLine::new(place, line, new.map_or(own, Kept::New)));
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
        let mut fields: Fields = serde_json::from_slice(text).ok()?;
        fields.set("parent_id", crate::tree::named(parent.as_ref()));
        serde_json::to_string(&fields).ok()
    }
}

/// The header of a session whose own is lost.
fn first_line(path: &Path, program: &Program) -> Header {
    let mut header = Header::new(&*path.file_stem().unwrap_or_default().to_string_lossy());
    header.program = Some(program.clone());
    header
}

/// A line in the side file.
#[derive(Serialize)]
struct Aside<'a> {
    #[serde(flatten)]
    place: &'a Quarantined,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn set_aside(disk: &Disk, from: &File, lines: &[Quarantined], path: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(disk.open_to_append(path)?);
    for place in lines {
        let (text, hex) = match String::from_utf8(piece(from, place.offset, place.bytes)?) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(hex(error.as_bytes()))),
        };
        serde_json::to_writer(&mut out, &Aside { place, text, hex })?;
        out.write_all(b"\n")?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
