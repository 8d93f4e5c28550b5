//! Reading a session file as a stream of lines.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use harness_core::EntryId;
use harness_core::port::{Loaded, TornTail};

use super::line::{FORMAT_VERSION, Header, Line, Unreadable, decode};
use super::options::{Limits, OpenOptions};
use crate::chain::{Chain, End, Parent, implied};
use crate::error::{Action, Error, Store};
use crate::fold::{Fold, Item, Record};
use crate::seal::Seal;
use crate::spine::Spine;
use crate::tree::Pi;

/// Content of a file, and the position of its next line.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) header: Option<Header>,
    pub(crate) loaded: Loaded,
    pub(crate) tail: Tail,
    pub(crate) chain: Chain,
    /// Where the messages came from.
    pub(crate) spine: Spine,
}

/// The end of a file as an appender needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The length up to which everything counts.
    pub(crate) length: u64,
    /// Lines up to there.
    pub(crate) lines: u64,
    /// Whether any of them is not blank.
    pub(crate) used: bool,
    /// Whether the last of them lacks its line feed.
    pub(crate) open: bool,
    /// Bytes after `length` that belong to a line that was not written to its end.
    pub(crate) torn: u64,
    /// The last entry.
    pub(crate) last: Option<EntryId>,
    /// The largest number of an id that we made.
    pub(crate) made: u32,
    /// How its lines are sealed, if they are.
    pub(crate) seal: Option<Arc<Seal>>,
    /// Number of the last sealed line.
    pub(crate) sealed: u64,
}

impl Tail {
    /// Counts one line more.
    pub(crate) fn grow(&mut self) {
        self.lines = self.lines.saturating_add(1);
        self.sealed = self.sealed.saturating_add(u64::from(self.seal.is_some()));
    }
}

/// Reads the lines of `reader` as they are at an end; errors call the session `named`.
pub(crate) fn scan(reader: impl Read, named: &Path, options: &OpenOptions, end: End) -> Result<Scan, Error> {
    let mut scanner = Scanner::new(named, options.limits);
    let mut lines = Lines::new(reader, named, options);
    while let Some(line) = lines.next()? {
        if !scanner.take(&line, lines.text())? {
            break;
        }
    }
    Ok(scanner.finish(end, lines.seal).0)
}

/// Everything that a file holds.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) scan: Scan,
    /// By place.
    pub(crate) records: Vec<Record>,
    /// The lines in our form with their places, the header left out.
    pub(crate) lines: Vec<(Option<u32>, Box<str>)>,
    /// Header as written, if it is of this format.
    pub(crate) first_line: Option<Box<str>>,
    /// The version, when the file is a tree of pi.
    pub(crate) pi: Option<u64>,
}

/// Reads everything, trees of pi included; errors call the session `named`.
pub(crate) fn scan_whole(reader: impl Read, named: &Path, options: &OpenOptions) -> Result<Whole, Error> {
    let mut scanner = Scanner::new(named, options.limits);
    let mut pi: Option<Pi> = None;
    let (mut texts, mut first_line) = (Vec::new(), None);
    let mut lines = Lines::new(reader, named, options);
    while let Some(line) = lines.next()? {
        let text = lines.text();
        let before = scanner.chain.len();
        let first = !scanner.scan.tail.used;
        if first && let Some(begun) = Pi::begin(text) {
            let begun = begun.map(|(reader, header)| {
                pi = Some(reader);
                scanner.scan.header = Some(header);
                scanner.scan.tail.used = true;
            });
            scanner.judge(&line, begun)?;
            continue;
        }
        let own = match &mut pi {
            Some(pi) if !text.is_empty() && line.fault.is_none() => pi.line(text).map(Cow::Owned),
            Some(_) | None => Ok(String::from_utf8_lossy(text)),
        };
        let continues = match &own {
            Ok(own) if pi.is_some() => scanner.take(&line, own.as_bytes())?,
            Ok(_) => scanner.take(&line, text)?,
            Err(unreadable) => scanner.judge(&line, Err(unreadable.clone()))?,
        };
        if !continues {
            break;
        }
        let place = (scanner.chain.len() > before).then_some(before);
        match own {
            Ok(own) if first && scanner.scan.header.is_some() => first_line = Some(own.into()),
            Ok(own) if !own.is_empty() => texts.push((place, own.into())),
            Ok(_) | Err(_) => {}
        }
    }
    let (scan, records) = scanner.finish(End::Last, lines.seal);
    Ok(Whole { scan, records, lines: texts, first_line, pi: pi.map(|pi| pi.version()) })
}

/// Reads the header alone; a file of bare messages has none.
pub(crate) fn header(
    reader: impl Read,
    named: &Path,
    options: &OpenOptions,
) -> Result<Option<Header>, Error> {
    let mut scanner = Scanner::new(named, options.limits);
    let mut lines = Lines::new(reader, named, options);
    while let Some(line) = lines.next()? {
        if !scanner.take(&line, lines.text())? || scanner.scan.tail.used {
            break;
        }
    }
    Ok(scanner.scan.header)
}

/// Opens a file of at most the permitted size for reading; `None` if it does not exist.
pub(crate) fn open(path: &Path, named: &Path, limits: Limits) -> Result<Option<File>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::Io {
                store: Store::Sessions,
                action: Action::Open,
                path: named.into(),
                source,
            });
        }
    };
    check_size(&file, named, limits)?;
    Ok(Some(file))
}

pub(crate) fn check_size(file: &File, named: &Path, limits: Limits) -> Result<(), Error> {
    let bytes = file.metadata().map_err(|source| failed(named, source))?.len();
    let limit = limits.file_bytes;
    if bytes > limit { Err(Error::TooLarge { path: named.into(), bytes, limit }) } else { Ok(()) }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { store: Store::Sessions, action: Action::Read, path: path.into(), source }
}

/// One line of a session; its text is in the reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineAt {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    /// Its bytes as they are stored, the line feed included.
    pub(crate) bytes: u64,
    /// Whether it has its line feed.
    pub(crate) whole: bool,
    /// Number of the last sealed line up to here.
    pub(crate) sealed: u64,
    /// Reason why its text is left out.
    pub(crate) fault: Option<LineFault>,
}

/// Reason why a line has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFault {
    /// It is longer than permitted.
    TooLong,
    /// It cannot be decrypted.
    Sealed(&'static str),
    /// It is an encrypted line of this session, and not the one that is due here.
    Moved { number: u64, due: u64 },
}

/// The lines of a session, read one after the other into one buffer, and decrypted.
#[derive(Debug)]
pub(crate) struct Lines<'a, R> {
    reader: BufReader<R>,
    named: &'a Path,
    options: &'a OpenOptions,
    buffer: Vec<u8>,
    number: u64,
    offset: u64,
    /// Whether every line so far was blank.
    blank: bool,
    /// How the lines are sealed, once the first one says that they are.
    pub(crate) seal: Option<Arc<Seal>>,
    /// Number of the last sealed line that was read.
    sealed: u64,
    /// Lines since then that could not be read.
    unreadable: u64,
    /// Sealed lines that are not there, when they are passed over.
    pub(crate) missing: Option<u64>,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(crate) fn new(reader: R, named: &'a Path, options: &'a OpenOptions) -> Self {
        let reader = BufReader::with_capacity(64 * 1024, reader);
        Self {
            reader,
            named,
            options,
            buffer: Vec::new(),
            number: 0,
            offset: 0,
            blank: true,
            seal: None,
            sealed: 0,
            unreadable: 0,
            missing: None,
        }
    }

    /// Passes over missing lines of a sealed session, and counts them, rather than reporting the line after
    /// them.
    pub(crate) fn past_gaps(mut self) -> Self {
        self.missing = Some(0);
        self
    }

    /// The text of the last line, without the white space around it. Empty for one that says how the others are
    /// sealed.
    pub(crate) fn text(&self) -> &[u8] {
        self.buffer.trim_ascii()
    }

    pub(crate) fn next(&mut self) -> Result<Option<LineAt>, Error> {
        let Some(mut line) = self.read().map_err(|source| failed(self.named, source))? else {
            return Ok(None);
        };
        if line.fault.is_none() && !self.text().is_empty() {
            line.fault = self.unseal()?;
        }
        if line.fault.is_some() {
            self.buffer.clear();
            let known = matches!(line.fault, Some(LineFault::Moved { .. }));
            self.unreadable = self.unreadable.saturating_add(u64::from(!known));
        }
        line.sealed = self.sealed;
        Ok(Some(line))
    }

    /// Decrypts the line, if the lines are sealed.
    fn unseal(&mut self) -> Result<Option<LineFault>, Error> {
        if std::mem::take(&mut self.blank) {
            let opened = Seal::of_first_line(self.text(), self.named, self.options.key.as_ref())?;
            if let Some(seal) = opened {
                self.seal = Some(Arc::new(seal));
                self.buffer.clear();
            }
            return Ok(None);
        }
        let Some(seal) = &self.seal else { return Ok(None) };
        let (number, text) = match seal.open(self.buffer.trim_ascii()) {
            Ok(opened) => opened,
            Err(reason) => return Ok(Some(LineFault::Sealed(reason))),
        };
        let due = self.sealed.saturating_add(1);
        let number = number.unwrap_or(due);
        if number < due || (number > due && self.missing.is_none()) {
            return Ok(Some(LineFault::Moved { number, due }));
        }
        let gap = number.saturating_sub(due).saturating_sub(std::mem::take(&mut self.unreadable));
        self.missing = self.missing.map(|missing| missing.saturating_add(gap));
        self.sealed = number;
        self.buffer = text;
        Ok(None)
    }

    fn read(&mut self) -> io::Result<Option<LineAt>> {
        self.buffer.clear();
        let limit = self.options.limits.line_bytes;
        // A sealed line is a third longer.
        let most =
            if self.seal.is_some() { limit.saturating_add(limit / 2).saturating_add(256) } else { limit };
        let most = most.saturating_add(1);
        let read = (&mut self.reader).take(most).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let mut bytes = read as u64;
        let mut whole = self.buffer.last() == Some(&b'\n');
        let too_long = !whole && bytes == most;
        if too_long {
            let (more, ended) = self.pass_over()?;
            bytes = bytes.saturating_add(more);
            whole = ended;
        }
        self.number += 1;
        let fault = too_long.then_some(LineFault::TooLong);
        let line =
            LineAt { number: self.number, offset: self.offset, bytes, whole, sealed: self.sealed, fault };
        self.offset = self.offset.saturating_add(bytes);
        Ok(Some(line))
    }

    /// Reads to the end of the line without keeping it: its bytes, and whether it has an end.
    fn pass_over(&mut self) -> io::Result<(u64, bool)> {
        let mut passed = 0_u64;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok((passed, false));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(chunk.len(), |end| end + 1);
            self.reader.consume(count);
            passed = passed.saturating_add(count as u64);
            if end.is_some() {
                return Ok((passed, true));
            }
        }
    }
}

/// Takes lines in and keeps what they mean.
#[derive(Debug)]
pub(crate) struct Scanner<'p> {
    path: &'p Path,
    limits: Limits,
    scan: Scan,
    chain: Chain,
    records: Vec<Record>,
}

impl<'p> Scanner<'p> {
    pub(crate) fn new(path: &'p Path, limits: Limits) -> Self {
        Self { path, limits, scan: Scan::default(), chain: Chain::default(), records: Vec::new() }
    }

    /// The file as the caller named it.
    pub(crate) fn path(&self) -> &'p Path {
        self.path
    }

    /// The entries so far.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The place of the entry named `id`.
    pub(crate) fn find(&mut self, id: &str) -> Option<u32> {
        self.chain.find(id)
    }

    /// Whether any line so far was read that is not blank.
    pub(crate) fn has_lines(&self) -> bool {
        self.scan.tail.used
    }

    /// Takes one line in; false when it is a torn tail, after which nothing follows.
    pub(crate) fn take(&mut self, line: &LineAt, text: &[u8]) -> Result<bool, Error> {
        let result = match line.fault {
            Some(LineFault::TooLong) if line.whole => {
                return Err(Error::LineTooLong {
                    path: self.path.into(),
                    line: line.number,
                    bytes: line.bytes,
                    limit: self.limits.line_bytes,
                });
            }
            Some(LineFault::TooLong) => Err(Unreadable::Damaged(String::new())),
            Some(LineFault::Sealed(reason)) => Err(Unreadable::Damaged(reason.to_owned())),
            Some(LineFault::Moved { number, due }) => Err(Unreadable::Damaged(format!(
                "it is encrypted line {number} where line {due} is due: lines were removed, repeated or moved"
            ))),
            None if text.is_empty() => Ok(()),
            None => decode(text)
                .and_then(|decoded| self.keep(decoded, line.number))
                .map(|()| self.scan.tail.used = true),
        };
        self.judge(line, result)
    }

    /// Handles a line that was or was not read; `false` for a torn tail.
    fn judge(&mut self, line: &LineAt, result: Result<(), Unreadable>) -> Result<bool, Error> {
        match result {
            Ok(()) => {
                self.scan.tail.length = line.offset.saturating_add(line.bytes);
                self.scan.tail.lines = line.number;
                self.scan.tail.open = !line.whole;
                self.scan.tail.sealed = line.sealed;
                Ok(true)
            }
            // What append had not finished was never acknowledged.
            Err(Unreadable::Damaged(_)) if !line.whole => {
                self.scan.tail.torn = line.bytes;
                self.scan.loaded.torn_tail = Some(TornTail { line: line.number, bytes: line.bytes });
                Ok(false)
            }
            Err(Unreadable::Damaged(reason)) => Err(Error::CorruptLine {
                path: self.path.into(),
                line: line.number,
                offset: line.offset,
                reason,
            }),
            Err(Unreadable::Newer(found)) => {
                Err(Error::NewerVersion { path: self.path.into(), found, supported: FORMAT_VERSION })
            }
            Err(Unreadable::Foreign(found)) => Err(Error::WrongFormat { path: self.path.into(), found }),
        }
    }

    fn keep(&mut self, line: Line<'_>, number: u64) -> Result<(), Unreadable> {
        match line {
            Line::Header(header) if !self.scan.tail.used => {
                self.scan.header = Some(header);
                Ok(())
            }
            Line::Header(_) => {
                Err(Unreadable::Damaged("a header follows the first line; two files were joined".to_owned()))
            }
            // A foreign line without an id is no link of the chain: nothing can name it.
            Line::Entry { id: None, record: Record { item: Item::Other, .. }, .. } => Ok(()),
            Line::Entry { id, parent, record } => self.push(id, &parent, record, number),
            Line::Compaction { id, parent, line } => {
                let shortening = line.resolve(|name| self.chain.find(name));
                let item = shortening.map_or(Item::Other, |short| Item::Compaction(Box::new(short)));
                self.push(Some(id), &parent, Record { line: 0, in_run: false, item }, number)
            }
        }
    }

    fn push(
        &mut self,
        id: Option<Cow<'_, str>>,
        parent: &Parent<'_>,
        mut record: Record,
        number: u64,
    ) -> Result<(), Unreadable> {
        record.line = u32::try_from(number).unwrap_or(0);
        let pushed = match id {
            Some(id) => self.chain.push(&id, parent),
            None => self.chain.push(implied(number).as_str(), parent),
        };
        pushed.map_err(Unreadable::Damaged)?;
        self.records.push(record);
        Ok(())
    }

    pub(crate) fn finish(mut self, end: End, seal: Option<Arc<Seal>>) -> (Scan, Vec<Record>) {
        self.scan.tail.seal = seal;
        let path = self.chain.path(end);
        let mut fold = Fold::along(&path);
        fold.add_all(&self.records);
        let torn_tail = self.scan.loaded.torn_tail;
        let folded = fold.finish();
        (self.scan.loaded, self.scan.spine) = (folded.loaded, folded.spine);
        self.scan.loaded.torn_tail = torn_tail;
        let descriptor = self.scan.header.as_ref().and_then(Header::descriptor_hash);
        self.scan.loaded.descriptor = descriptor.map(Into::into);
        self.scan.tail.last = self.chain.at(end).and_then(|last| self.chain.id(last));
        self.scan.tail.made = self.chain.made();
        self.scan.chain = self.chain;
        (self.scan, self.records)
    }
}
