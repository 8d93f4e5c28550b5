//! Images whose paths are in a message.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::core::message::{Block, UserMessage};

/// Maximum size of an image in bytes, as accepted by providers.
pub(super) const LONGEST: u64 = 5 << 20;

/// Maximum number of images in a message.
const MOST: usize = 10;

/// Supported image types: file extension, media type, first bytes.
const KINDS: [(&str, &str, &[u8]); 5] = [
    ("png", "image/png", b"\x89PNG"),
    ("jpg", "image/jpeg", b"\xff\xd8\xff"),
    ("jpeg", "image/jpeg", b"\xff\xd8\xff"),
    ("gif", "image/gif", b"GIF8"),
    ("webp", "image/webp", b"RIFF"),
];

/// Builds the message of a text with its images; returns problems with skipped images.
pub(super) fn message(text: &str, home: Option<&Path>) -> (UserMessage, Vec<String>) {
    let mut message = UserMessage::text(text);
    let mut problems = Vec::new();
    let named = words(text).filter_map(|word| Some((word.clone(), named(&word, home)?)));
    for (number, (word, path)) in named.enumerate() {
        if number >= MOST {
            problems.push(format!("{word} not sent: a message can have at most {MOST} images"));
            break;
        }
        match image(&path) {
            Ok(Some(block)) => message.content.push(block),
            // A word that only looks like a path.
            Ok(None) if !word.starts_with('@') => {}
            Ok(None) => problems.push(format!("{word} not sent: file not found")),
            Err(why) => problems.push(format!("{word} not sent: {why}")),
        }
    }
    (message, problems)
}

/// Splits a text into words. Quotes and backslashes protect spaces, as in paths that a terminal inserts on a drop.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None) => word.extend(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) if word.is_empty() || word == "@" => quote = Some(c),
            (c, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty())
}

/// Path of the image that a word names.
fn named(word: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = word.strip_prefix('@').unwrap_or(word);
    let path = path.strip_prefix("file://").unwrap_or(path);
    kind(Path::new(path))?;
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(PathBuf::from(path)),
    }
}

/// Whether the extension of a path is that of a supported image.
pub(super) fn is_image(path: &Path) -> bool {
    kind(path).is_some()
}

fn kind(path: &Path) -> Option<&'static (&'static str, &'static str, &'static [u8])> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    KINDS.iter().find(|(known, ..)| *known == ending)
}

/// Reads an image file; `None` if it does not exist.
fn image(path: &Path) -> Result<Option<Block>, String> {
    let Some((_, media_type, begins)) = kind(path) else { return Ok(None) };
    if !path.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    read.map_err(|fault| format!("cannot read it: {fault}"))?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("larger than {} MiB", LONGEST >> 20));
    }
    if !bytes.starts_with(begins) {
        return Err("the content does not match the file extension".to_owned());
    }
    Ok(Some(Block::image(STANDARD.encode(bytes), *media_type)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, images: usize, problems: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("a.png", b"\x89PNG and more");
        write("with space.JPG", b"\xff\xd8\xff and more");
        write("false.gif", b"no image");
        write("large.webp", &[b"RIFF".as_slice(), &vec![0; 5 << 20]].concat());
        let text = text.replace("DIR", folder.path().to_str().unwrap());
        let (message, found) = self::message(&text, Some(folder.path()));
        let found: Vec<String> =
            found.iter().map(|problem| problem.replace(folder.path().to_str().unwrap(), "DIR")).collect();
        assert_eq!(message.content.len() - 1, images);
        assert_eq!(found, problems);
        assert_eq!(message.content[0].as_text(), Some(text.as_str()), "the text stays as it is");
    }

    #[test]
    fn a_path_to_an_image_sends_the_image() {
        check("what is on DIR/a.png here?", 1, &[]);
        check("@DIR/a.png", 1, &[]);
        check("~/a.png", 1, &[]);
        check("'DIR/with space.JPG' and DIR/with\\ space.JPG", 2, &[]);
    }

    #[test]
    fn what_is_no_image_is_text() {
        check("what does a.png mean? see notes.txt", 0, &[]);
        check("it's about @someone", 0, &[]);
    }

    #[test]
    fn an_image_that_cannot_be_sent_is_told() {
        check("@DIR/none.png", 0, &["@DIR/none.png not sent: file not found"]);
        check("DIR/false.gif", 0, &["DIR/false.gif not sent: the content does not match the file extension"]);
        check("DIR/large.webp", 0, &["DIR/large.webp not sent: larger than 5 MiB"]);
    }
}
