//! Temporary files for other programs of the user.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A file in the temporary directory that only the user can access. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateFile(PathBuf);

impl PrivateFile {
    /// Creates the file. `name` distinguishes the files of this process.
    pub(crate) fn create(name: &str, text: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("harness-{}-{name}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let this = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(this)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the first `most` bytes.
    pub(crate) fn read(&self, most: u64) -> io::Result<String> {
        let mut text = String::new();
        File::open(&self.0)?.take(most).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // A leftover in the temporary directory does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}
