//! `harness session export`.

use harness::session::OpenOptions;

use super::{entry, leaf, read};
use crate::args::{ExportArgs, ExportFormat};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Writes a session in another form.
pub(super) fn export(args: &ExportArgs) -> Result<Exit, CliError> {
    let tree = read(&args.session)?;
    let id = entry(&tree, &args.session, args.leaf.as_deref())?;
    if let (ExportFormat::Jsonl, Some(path)) = (args.format, &args.output) {
        tree.save(path, &OpenOptions::new())?;
        return Ok(Exit::Completed);
    }
    let mut text = Vec::new();
    let written = match args.format {
        ExportFormat::Jsonl => tree.write_jsonl(&mut text),
        ExportFormat::Markdown => tree.write_markdown(leaf(id.as_ref()), &mut text),
    };
    written.map_err(|source| CliError::Io { action: "export the session", source })?;
    let text = String::from_utf8_lossy(&text);
    let Some(path) = &args.output else { return output::print_payload(&text, Exit::Completed) };
    let new = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    new.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|source| CliError::NotWritten { path: path.clone(), source })?;
    Ok(Exit::Completed)
}
