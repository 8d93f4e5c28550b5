//! Encryption of sessions: each line is sealed by itself, so that appending stays appending.
//!
//! The first line of a sealed session says how the others are sealed, and by which key; it holds no secret.
//! Each further line is one JSON object whose `sealed` is the encrypted line.

#[cfg(not(feature = "encryption"))]
mod absent;
#[cfg(feature = "encryption")]
mod cipher;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

#[cfg(not(feature = "encryption"))]
pub(crate) use absent::{Key, Seal};
#[cfg(feature = "encryption")]
pub use cipher::Key;
#[cfg(feature = "encryption")]
pub(crate) use cipher::Seal;

/// The name of the format.
const FORMAT: &str = "harness.sealed";

/// The version of new sessions, and the newest that is read.
///
/// | version | what it is |
/// |---|---|
/// | 1 | lines are authenticated with the salt |
/// | 2 | lines are numbered, and authenticated with the salt and their number |
const VERSION: u32 = 2;

/// The first line of a sealed session.
#[derive(Serialize, Deserialize)]
struct FirstLine {
    /// `session`, so that programs that do not know this format name it.
    #[serde(rename = "type")]
    kind: String,
    format: String,
    version: u64,
    /// The cipher is `XChaCha20-Poly1305`.
    cipher: String,
    /// Id of the key.
    key: String,
    /// Sixteen random bytes of this session, in Base64: lines of other sessions do not fit.
    salt: String,
}

/// The first line, if it is that of a sealed session.
fn first_line(text: &[u8], named: &Path) -> Result<Option<FirstLine>, Error> {
    let line: Option<FirstLine> = serde_json::from_slice(text).ok();
    match line.filter(|line| line.format == FORMAT) {
        Some(line) if line.version > u64::from(VERSION) => {
            Err(Error::NewerVersion { path: named.into(), found: line.version, supported: VERSION })
        }
        line => Ok(line),
    }
}

/// Whether a line is the first one of a sealed session.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn is_first_line(text: &[u8]) -> bool {
    serde_json::from_slice(text).is_ok_and(|line: FirstLine| line.format == FORMAT)
}

/// Seals what `buffer` holds from `start` on: one line with its line feed, the sealed line of this number.
pub(crate) fn seal_from(
    start: usize,
    seal: Option<&Seal>,
    number: u64,
    buffer: &mut Vec<u8>,
) -> Result<(), String> {
    let Some(seal) = seal else { return Ok(()) };
    let sealed = seal.seal(number, buffer.get(start..).unwrap_or_default().trim_ascii())?;
    buffer.truncate(start);
    buffer.extend_from_slice(sealed.as_bytes());
    buffer.push(b'\n');
    Ok(())
}

/// The lines of a session, encrypted with a key. Each call takes a new salt: lines of two calls do not mix.
pub(crate) fn sealed(lines: &[u8], key: &Key) -> Result<Vec<u8>, String> {
    let seal = Seal::new(key)?;
    let mut out = seal.first_line()?.into_bytes();
    out.push(b'\n');
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (number, line) in (1..).zip(lines) {
        out.extend_from_slice(seal.seal(number, line)?.as_bytes());
        out.push(b'\n');
    }
    Ok(out)
}
