//! A draft in the user's editor.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use harness::host::process::foreground;

use crate::env;

/// Maximum size of a draft in bytes.
const LONGEST: u64 = 1 << 20;

/// A file with a draft. It is removed when this is dropped.
struct Draft(PathBuf);

impl Draft {
    /// Creates the file, which only the user can access.
    fn create(text: &str, number: i64) -> io::Result<Self> {
        let name = format!("harness-draft-{}-{number:x}.md", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }

    fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        File::open(&self.0)?.take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A leftover in the temporary directory does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens a text in the user's editor and returns it as it was saved, without its last line end; `None` if the editor
/// failed, as it does to cancel. `number` tells drafts apart.
pub(super) async fn edit(text: &str, number: i64) -> Result<Option<String>, String> {
    let editor = env::editor();
    let failed = |fault: io::Error| format!("cannot edit the draft with `{editor}`: {fault}");
    let draft = Draft::create(text, number).map_err(failed)?;
    let status = foreground(OsStr::new("/bin/sh"), &line(&editor, &draft.0)).await.map_err(failed)?;
    // The shell's code for a program that does not exist.
    if status.code() == Some(127) {
        return Err(format!("editor `{editor}` not found; set VISUAL or EDITOR"));
    }
    if !status.success() {
        return Ok(None);
    }
    let text = draft.read().map_err(failed)?;
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

/// Arguments of the shell: an editor may be given with options.
fn line(editor: &str, file: &Path) -> [OsString; 4] {
    ["-c".into(), format!("exec {editor} \"$1\"").into(), "editor".into(), file.into()]
}
