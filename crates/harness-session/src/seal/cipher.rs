//! XChaCha20-Poly1305 over single lines.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use harness_core::canonical;
use secrecy::{ExposeSecret as _, SecretBox};
use serde::{Deserialize, Serialize};

use super::{FORMAT, FirstLine, VERSION, first_line};
use crate::error::Error;

const CIPHER: &str = "XChaCha20-Poly1305";

/// Prefix of a key file, with its version.
const KEY_FILE: &str = "harness-session-key-1:";

/// The largest key file, in bytes.
const LONGEST: u64 = 1024;

const NONCE: usize = 24;

/// Key that encrypts sessions ([`OpenOptions::key`](crate::OpenOptions::key)). It never prints; its
/// [id](Key::id) does.
///
/// Who loses the key loses the sessions: keep a copy of its file apart from them.
///
/// ```
/// use harness_session::Key;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("session.key");
/// let key = Key::create(&path)?;
/// assert_eq!(Key::read(&path)?.id(), key.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Key {
    bytes: Arc<SecretBox<[u8; 32]>>,
    id: Arc<str>,
}

impl Key {
    /// Makes a random key and stores it in a new file, readable by its owner only.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if the file exists or cannot be written, or the system has no random numbers.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::KeyFile { path: path.into(), reason: error.to_string() };
        let bytes: [u8; 32] = random().map_err(|reason| Error::KeyFile { path: path.into(), reason })?;
        let key = Self::of(bytes);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let written = file.write_all(format!("{KEY_FILE}{}\n", BASE64.encode(bytes)).as_bytes());
        written.and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(key)
    }

    /// Reads the key in a file.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if it cannot be read, holds no key, or others may read it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bad = |reason: &str| Error::KeyFile { path: path.into(), reason: reason.to_owned() };
        let file = File::open(path).map_err(|error| bad(&error.to_string()))?;
        let about = file.metadata().map_err(|error| bad(&error.to_string()))?;
        // A container that does not run as root reads its secrets as files of root that a group can read.
        let denied = if about.uid() == 0 { 0o037 } else { 0o077 };
        if about.mode() & denied != 0 {
            return Err(bad("other users can read it; run `chmod 600` on it"));
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(|error| bad(&error.to_string()))?;
        let key = text.trim().strip_prefix(KEY_FILE).and_then(|key| BASE64.decode(key).ok());
        let bytes = key.and_then(|key| <[u8; 32]>::try_from(key).ok());
        bytes.map(Self::of).ok_or_else(|| bad("it holds no session key"))
    }

    /// Public name of the key: it distinguishes keys and reveals nothing of them.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn of(bytes: [u8; 32]) -> Self {
        let hash = canonical::sha256_hex([b"harness.session.key".as_slice(), &bytes].concat());
        let id = hash.get(..16).unwrap_or(&hash);
        Self { bytes: Arc::new(SecretBox::new(Box::new(bytes))), id: id.into() }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How the lines of one session are sealed.
#[derive(Debug)]
pub(crate) struct Seal {
    key: Key,
    salt: [u8; 16],
    version: u64,
}

impl PartialEq for Seal {
    fn eq(&self, other: &Self) -> bool {
        (self.key.id(), self.salt) == (other.key.id(), other.salt)
    }
}

impl Eq for Seal {}

/// A sealed line.
#[derive(Serialize, Deserialize)]
struct SealedLine {
    /// Its number among the sealed lines, from 1; absent in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    /// Nonce and encrypted text, in Base64.
    sealed: String,
}

impl Seal {
    /// The seal of a new session.
    pub(crate) fn new(key: &Key) -> Result<Self, String> {
        Ok(Self { key: key.clone(), salt: random()?, version: u64::from(VERSION) })
    }

    /// The seal that a first line names; `None` if it is not that of a sealed session.
    pub(crate) fn of_first_line(text: &[u8], named: &Path, key: Option<&Key>) -> Result<Option<Self>, Error> {
        let Some(line) = first_line(text, named)? else { return Ok(None) };
        let Some(key) = key else { return Err(Error::Sealed { path: named.into(), key: line.key }) };
        if line.key != key.id() {
            return Err(Error::WrongKey { path: named.into(), key: line.key, given: key.id().to_owned() });
        }
        let salt = BASE64.decode(&line.salt).ok().and_then(|salt| salt.try_into().ok());
        let salt = salt.filter(|_| line.cipher == CIPHER && line.version > 0);
        let seal = |salt| Some(Self { key: key.clone(), salt, version: line.version });
        salt.map(seal).ok_or_else(|| Error::CorruptLine {
            path: named.into(),
            line: 1,
            offset: 0,
            reason: "it does not say how the session is encrypted".to_owned(),
        })
    }

    /// The first line of the session.
    pub(crate) fn first_line(&self) -> Result<String, String> {
        let line = FirstLine {
            kind: "session".to_owned(),
            format: FORMAT.to_owned(),
            version: self.version,
            cipher: CIPHER.to_owned(),
            key: self.key.id().to_owned(),
            salt: BASE64.encode(self.salt),
        };
        serde_json::to_string(&line).map_err(|error| error.to_string())
    }

    /// Encrypts the sealed line of this number.
    pub(crate) fn seal(&self, number: u64, line: &[u8]) -> Result<String, String> {
        let nonce: [u8; NONCE] = random()?;
        let number = (self.version > 1).then_some(number);
        let place = self.place(number);
        let encrypted = self.cipher().encrypt(&XNonce::from(nonce), Payload { msg: line, aad: &place });
        let encrypted = encrypted.map_err(|_| "it cannot be encrypted")?;
        let sealed = BASE64.encode([&nonce[..], &encrypted].concat());
        serde_json::to_string(&SealedLine { number, sealed }).map_err(|error| error.to_string())
    }

    /// Decrypts a line, and returns its number with it; lines of version 1 have none.
    pub(crate) fn open(&self, line: &[u8]) -> Result<(Option<u64>, Vec<u8>), &'static str> {
        let sealed: SealedLine = serde_json::from_slice(line).map_err(|_| "it is not an encrypted line")?;
        let bytes = BASE64.decode(sealed.sealed).map_err(|_| "it is not an encrypted line")?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE>().ok_or("it is not an encrypted line")?;
        if sealed.number.is_some() != (self.version > 1) {
            return Err("it is not an encrypted line of this version");
        }
        let place = self.place(sealed.number);
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: text, aad: &place });
        let opened = opened.map_err(|_| "its encrypted text was changed, or is of another session")?;
        Ok((sealed.number, opened))
    }

    /// Associated data of a line: the salt of its session, and its number.
    fn place(&self, number: Option<u64>) -> Vec<u8> {
        let number = number.map(u64::to_be_bytes);
        self.salt.into_iter().chain(number.into_iter().flatten()).collect()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.key.bytes.expose_secret().into())
    }
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(bytes)
}
