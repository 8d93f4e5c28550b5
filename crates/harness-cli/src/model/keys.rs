//! Sources of API keys: a named key file, the environment, and the default key file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use harness::adapters::ApiKey;
use harness::diagnostics::{self, Diagnostic, Place, Severity, YamlLimits};

use super::providers::{PROVIDERS, Provider};
use crate::env;
use crate::error::CliError;
use crate::secrets;

/// Maximum size in bytes of a key file.
const MOST_BYTES: u64 = 64 << 10;

/// Code of an error in a key file.
const INVALID: &str = "cli.key_file";

/// Name of the default key file.
const USUAL: &str = "keys.yaml";

/// The available API keys.
#[derive(Debug)]
pub(crate) struct Keys {
    named: Option<KeyFile>,
    usual: Option<KeyFile>,
}

/// An API key and its origin.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) key: ApiKey,
    pub(crate) origin: Origin,
}

/// Origin of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An environment variable.
    Environment(&'static str),
    /// A key file.
    File(PathBuf),
}

/// A file that maps names of providers to their API keys.
#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    keys: Vec<(&'static str, ApiKey)>,
}

/// Error of a key file. It never contains text of the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileFault {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("not a file")]
    NoFile,
    #[error("other users can access it (mode {mode:03o})")]
    Open { mode: u32 },
    #[error("larger than {} KiB", MOST_BYTES >> 10)]
    TooLong,
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
}

impl KeyFileFault {
    /// The hint for the user.
    pub(crate) fn hint(&self, path: &Path) -> String {
        match self {
            Self::Open { .. } => format!("restrict access: chmod 600 {}", path.display()),
            Self::Io(_) | Self::NoFile => "check the path and its permissions".to_owned(),
            Self::TooLong | Self::Invalid(_) => {
                let names: Vec<_> = PROVIDERS.iter().filter(|own| !own.local).map(|own| own.name).collect();
                format!("write a line `provider: key` for each provider: {}, or local", names.join(", "))
            }
        }
    }
}

impl Keys {
    /// Reads the named key file, or else the default one if it exists.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, CliError> {
        let fault = |path: &Path, fault| CliError::KeyFile { path: path.to_owned(), fault };
        let named = named.map(|path| KeyFile::read(path).map_err(|e| fault(path, e))).transpose()?;
        let usual = match Self::usual().filter(|_| named.is_none()) {
            Some(path) => match KeyFile::read(&path) {
                Err(KeyFileFault::Io(e)) if absent(&e) => None,
                read => Some(read.map_err(|e| fault(&path, e))?),
            },
            None => None,
        };
        Ok(Self { named, usual })
    }

    /// The path of the default key file.
    pub(crate) fn usual() -> Option<PathBuf> {
        Some(env::settings()?.join(USUAL))
    }

    /// The API key of a provider: from the named file, else the environment, else the default file.
    pub(crate) fn of(&self, provider: &Provider) -> Option<Key> {
        let from = |file: &Option<KeyFile>| file.as_ref()?.of(provider);
        let environment = || {
            let key = env::key(provider.key_name)?;
            Some(Key { key, origin: Origin::Environment(provider.key_name) })
        };
        from(&self.named).or_else(environment).or_else(|| from(&self.usual))
    }
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl KeyFile {
    fn read(path: &Path) -> Result<Self, KeyFileFault> {
        Ok(Self { path: path.to_owned(), keys: keys_in(&read_private(path)?, path)? })
    }

    fn of(&self, provider: &Provider) -> Option<Key> {
        let entry = if provider.local { "local" } else { provider.name };
        let (_, key) = self.keys.iter().find(|(name, _)| *name == entry)?;
        Some(Key { key: key.clone(), origin: Origin::File(self.path.clone()) })
    }
}

/// Reads a small private file.
pub(crate) fn read_private(path: &Path) -> Result<String, KeyFileFault> {
    secrets::protect(path);
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(KeyFileFault::NoFile);
    }
    if let Some(mode) = open_to_others(&metadata) {
        return Err(KeyFileFault::Open { mode });
    }
    if metadata.len() > MOST_BYTES {
        return Err(KeyFileFault::TooLong);
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The permission bits of a file that is accessible to others; `None` for private files.
#[cfg(unix)]
fn open_to_others(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode() & 0o777;
    (!is_private(mode, metadata.uid())).then_some(mode)
}

/// A private file is accessible to its owner alone. One of root may be readable by a group: a container that does not
/// run as root reads its secrets that way.
#[cfg(unix)]
fn is_private(mode: u32, owner: u32) -> bool {
    let denied = if owner == 0 { 0o037 } else { 0o077 };
    mode & denied == 0
}

/// Always `None`: without mode bits, the user's directory protects the file.
#[cfg(not(unix))]
fn open_to_others(_: &std::fs::Metadata) -> Option<u32> {
    None
}

fn keys_in(text: &str, path: &Path) -> Result<Vec<(&'static str, ApiKey)>, KeyFileFault> {
    let limits = YamlLimits::for_text(MOST_BYTES);
    let document = diagnostics::read(text, path.display().to_string(), &limits, None).map_err(|error| {
        // The message of the parser could quote a key.
        let place = error.place.map(Place::without_excerpt);
        KeyFileFault::Invalid(Box::new(Diagnostic::new(Severity::Error, INVALID, "invalid YAML").at(place)))
    })?;
    let Some(root) = document.root().filter(|root| !document.is_null(*root)) else { return Ok(Vec::new()) };
    let Some(entries) = document.entries(root) else {
        return Err(invalid(document.place(root), "expected a mapping from providers to API keys"));
    };
    let mut keys = Vec::new();
    for entry in entries {
        let name = document.resolve(&entry.key);
        let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == name) else {
            return Err(invalid(document.place_of(entry.key_bytes), "unknown provider"));
        };
        let key = document.string(entry.value);
        key.into_iter().for_each(secrets::learn);
        let key = key.map(ApiKey::from).filter(|key| !key.is_empty());
        let provider = provider.name;
        let message = || format!("the API key for {provider} is not a string");
        keys.push((provider, key.ok_or_else(|| invalid(document.place(entry.value), &message()))?));
    }
    Ok(keys)
}

/// An error that never shows the text of the file.
fn invalid(place: Place, message: &str) -> KeyFileFault {
    let error = Diagnostic::new(Severity::Error, INVALID, message).at(place.without_excerpt());
    KeyFileFault::Invalid(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = match keys_in(text, Path::new("keys.yaml")) {
            Ok(keys) => keys.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(read, expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_private_to_its_owner_or_to_root_and_a_group_of_readers() {
        let check = |mode, owner, private| assert_eq!(is_private(mode, owner), private, "{mode:o} {owner}");
        check(0o600, 1000, true);
        check(0o640, 1000, false);
        check(0o604, 1000, false);
        check(0o440, 0, true);
        check(0o460, 0, false);
        check(0o444, 0, false);
    }

    #[test]
    fn a_key_file_maps_providers_to_keys() {
        check("openai: sk-1\nopenrouter: sk-2\n", "openai openrouter");
        check("", "");
        check("# nothing yet\n", "");
    }

    #[test]
    fn faults_of_a_key_file_do_not_tell_what_stands_in_it() {
        check("sk-secret", "keys.yaml:1:1: expected a mapping from providers to API keys");
        check("openai: [sk-secret]", "keys.yaml:1:9: the API key for openai is not a string");
        check("openai: ''", "keys.yaml:1:9: the API key for openai is not a string");
        check("openai: sk\nsk-secret: x", "keys.yaml:2:1: unknown provider");
        check("openai: 'sk-secret", "keys.yaml:2:1: invalid YAML");
    }
}
