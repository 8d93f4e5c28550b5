//! Messages with what the chat adds to a user's text: images, files, and the output of the user's commands.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use harness::core::message::{Block, UserMessage};

use super::images;

/// Maximum size in bytes of the attached part of a file.
const LONGEST: usize = 64 << 10;

/// Maximum number of files in a message.
const MOST: usize = 20;

/// Start of the block of a file, up to its path, and of a command, up to the line.
const FILE: &str = "<file path=\"";
const COMMAND: &str = "<user-command line=\"";

/// Builds the message of a text with its images, and with the files that it names as `@path`. Returns notices about
/// what is not attached, or only in part.
pub(super) fn message(text: &str, home: Option<&Path>) -> (UserMessage, Vec<String>) {
    let (mut message, mut notices) = images::message(text, home);
    let mut attached: Vec<PathBuf> = Vec::new();
    for word in images::words(text) {
        let Some(path) = named(&word, home).filter(|path| !attached.contains(path)) else { continue };
        if attached.len() >= MOST {
            notices.push(format!("{word} not attached: a message can have at most {MOST} files"));
            break;
        }
        match file(&path) {
            Ok((block, notice)) => {
                message.content.push(block);
                notices.extend(notice);
            }
            Err(why) => notices.push(format!("{word} not attached: {why}")),
        }
        attached.push(path);
    }
    (message, notices)
}

/// The existing file that a word of the form `@path` names, if it is not an image. Punctuation may follow.
fn named(word: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = word.strip_prefix('@').filter(|path| !path.is_empty())?;
    let whole = |path: &str| match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let shorter = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let found = [path, shorter].map(whole).into_iter().find(|path| path.is_file())?;
    (!images::is_image(&found)).then_some(found)
}

/// The block of a file, and a notice if it is cut.
fn file(path: &Path) -> Result<(Block, Option<String>), String> {
    let failed = |fault: std::io::Error| format!("cannot read it: {fault}");
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    // Four more, so that a cut character is told from an invalid one.
    file.take(LONGEST as u64 + 4).read_to_end(&mut bytes).map_err(failed)?;
    let is_cut = bytes.len() > LONGEST;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(fault) if is_cut && fault.utf8_error().valid_up_to() >= LONGEST - 4 => {
            let valid = fault.utf8_error().valid_up_to();
            let mut bytes = fault.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
        Err(_) => return Err("not a text file in UTF-8".to_owned()),
    };
    let shown = path.display().to_string();
    let kept = if is_cut { start(&text) } else { &text };
    let note = is_cut.then(|| format!("only the first {} of {} bytes are attached", kept.len(), size));
    let below = note.as_ref().map(|note| format!("\n… {note}")).unwrap_or_default();
    let block = Block::text(format!("{FILE}{}\">\n{kept}{below}\n</file>", attribute(&shown)));
    Ok((block, note.map(|note| format!("@{shown}: {note}"))))
}

/// The first [`LONGEST`] bytes of a text, up to a line end if there is one.
fn start(text: &str) -> &str {
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or(text)
}

/// The block of a command that the user ran.
pub(super) fn command(line: &str, result: &str) -> Block {
    Block::text(format!("{COMMAND}{}\">\n{result}\n</user-command>", attribute(line)))
}

fn attribute(text: &str) -> String {
    text.replace('"', "'").replace(['\n', '>'], " ")
}

/// A message as it is shown: what the user typed, and a label for each other block.
pub(super) fn shown(content: &[Block]) -> String {
    let shown = content.iter().enumerate().filter_map(|(number, block)| {
        if let Block::Image(image) = block {
            return Some(format!("[image {}]", image.mime_type.as_deref().unwrap_or_default()));
        }
        let text = block.as_text()?;
        Some(label(number, text).unwrap_or_else(|| text.to_owned()))
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// Text that the user typed.
pub(super) fn typed(content: &[Block]) -> String {
    let texts = content.iter().enumerate().filter_map(|(number, block)| Some((number, block.as_text()?)));
    let typed = texts.filter(|(number, text)| label(*number, text).is_none()).map(|(_, text)| text);
    typed.collect::<Vec<_>>().join("\n")
}

/// Label of a block that the chat has added. The first block is the user's.
fn label(number: usize, text: &str) -> Option<String> {
    let of = |start: &str| text.strip_prefix(start)?.split_once("\">\n").map(|(name, _)| name.to_owned());
    if number == 0 {
        return None;
    }
    let file = of(FILE).map(|path| format!("[file {path}]"));
    file.or_else(|| of(COMMAND).map(|line| format!("[output of `{line}`]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str, notices: &[&str]) -> UserMessage {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap().to_owned();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("a.txt", b"one\ntwo\n");
        write("large.txt", "ä line\n".repeat(10_000).as_bytes());
        write("data.bin", b"\xff\xfe\x00");
        write("pixel.png", b"\x89PNG");
        let text = text.replace("DIR", &here);
        let (message, found) = super::message(&text, Some(folder.path()));
        let plain = |text: &str| text.replace(&here, "DIR");
        assert_eq!(plain(&super::shown(&message.content)), shown);
        assert_eq!(found.iter().map(|notice| plain(notice)).collect::<Vec<_>>(), notices);
        assert_eq!(typed(&message.content), text);
        message
    }

    #[test]
    fn named_files_are_attached() {
        let message = check("what is in @DIR/a.txt?", "what is in @DIR/a.txt?\n[file DIR/a.txt]", &[]);
        assert!(message.content[1].as_text().unwrap().ends_with("\">\none\ntwo\n\n</file>"));
        check("@~/a.txt and @~/a.txt", "@~/a.txt and @~/a.txt\n[file DIR/a.txt]", &[]);
        check("@DIR/pixel.png", "@DIR/pixel.png\n[image image/png]", &[]);
    }

    #[test]
    fn other_words_are_text() {
        check("DIR/a.txt for @someone and @", "DIR/a.txt for @someone and @", &[]);
    }

    #[test]
    fn cut_and_unreadable_files_are_reported() {
        let cut = "@DIR/large.txt: only the first 65536 of 80000 bytes are attached";
        let message = check("@DIR/large.txt", "@DIR/large.txt\n[file DIR/large.txt]", &[cut]);
        assert!(
            message.content[1].as_text().unwrap().contains("ä line\n\n… only the first 65536 of 80000 bytes")
        );
        check("@DIR/data.bin", "@DIR/data.bin", &["@DIR/data.bin not attached: not a text file in UTF-8"]);
    }

    #[test]
    fn output_of_a_command_is_a_label() {
        let content = [Block::text("why?"), command("ls \"a\"", "exit code 0\na")];
        assert_eq!(shown(&content), "why?\n[output of `ls 'a'`]");
        assert_eq!(typed(&content), "why?");
    }
}
