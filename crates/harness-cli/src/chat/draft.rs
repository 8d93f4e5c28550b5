//! A draft in the user's editor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use harness::host::process::foreground;

use crate::env;
use crate::private_file::PrivateFile;

/// Maximum size of a draft in bytes.
const LONGEST: u64 = 1 << 20;

/// Opens a text in the user's editor and returns it as it was saved, without its last line end; `None` if the editor
/// failed, as it does to cancel. `number` distinguishes drafts.
pub(super) async fn edit(text: &str, number: i64) -> Result<Option<String>, String> {
    let editor = env::editor();
    let failed = |fault: io::Error| format!("cannot edit the draft with `{editor}`: {fault}");
    let draft = PrivateFile::create(&format!("{number:x}.md"), text).map_err(failed)?;
    let status = foreground(OsStr::new("/bin/sh"), &line(&editor, draft.path())).await.map_err(failed)?;
    // The shell's code for a program that does not exist.
    if status.code() == Some(127) {
        return Err(format!("editor `{editor}` not found; set VISUAL or EDITOR"));
    }
    if !status.success() {
        return Ok(None);
    }
    let text = draft.read(LONGEST).map_err(failed)?;
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

/// Arguments of the shell: an editor may be given with options.
fn line(editor: &str, file: &Path) -> [OsString; 4] {
    ["-c".into(), format!("exec {editor} \"$1\"").into(), "editor".into(), file.into()]
}
