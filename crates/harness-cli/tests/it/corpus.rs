//! The files of `fixtures/hostile`, as its README describes them.

use std::fs;
use std::path::{Path, PathBuf};

/// The API key that nothing may show.
pub(crate) const PLANTED: &str = "sk-or-v1-planted0123456789abcdef";

/// A file of the corpus.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The directory and the name.
    pub(crate) name: String,
    source: Vec<u8>,
}

/// What follows a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Close,
    Hold,
    Repeat(Vec<u8>),
}

/// All cases of a directory.
pub(crate) fn cases(directory: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hostile").join(directory);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 5, "{directory} has cases");
    let case = |path: &PathBuf| {
        let name = format!("{directory}/{}", path.file_name().unwrap().to_str().unwrap());
        Case { name, source: fs::read(path).unwrap() }
    };
    paths.iter().map(case).collect()
}

impl Case {
    /// The file's content; `outside` is the directory that must not change.
    pub(crate) fn content(&self, outside: &Path) -> Vec<u8> {
        let source = replaced(&self.source, b"@@OUTSIDE@@", outside.to_str().unwrap().as_bytes());
        expanded(&source)
    }

    /// The bytes of an HTTP message, and what follows them.
    pub(crate) fn message(&self) -> (Vec<u8>, Then) {
        let (then, rest) = match self.source.strip_prefix(b"# then: ") {
            None => (Then::Close, &self.source[..]),
            Some(rest) => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
                let then = match &rest[..end] {
                    b"hold" => Then::Hold,
                    repeat => Then::Repeat(replaced(repeat.strip_prefix(b"repeat ").unwrap(), b"\\n", b"\n")),
                };
                (then, &rest[end + 1..])
            }
        };
        let split = rest.windows(2).position(|pair| pair == b"\n\n").map_or(rest.len(), |at| at + 2);
        let body = expanded(&rest[split..]);
        let head = replaced(&rest[..split], b"@@LENGTH@@", body.len().to_string().as_bytes());
        ([expanded(&replaced(&head, b"\n", b"\r\n")), body].concat(), then)
    }
}

fn replaced(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|window| window == what) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + what.len()..];
    }
    [out, rest.to_vec()].concat()
}

fn expanded(text: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let out = expand(&mut rest, false);
    assert!(rest.is_empty(), "a placeholder is not ended");
    out
}

/// Expands up to the end, or up to the `@@` that ends a repeated text.
fn expand(rest: &mut &[u8], inside: bool) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(first) = rest.first() {
        let Some(placeholder) = rest.strip_prefix(b"@@") else {
            out.push(*first);
            *rest = &rest[1..];
            continue;
        };
        *rest = placeholder;
        if let Some(tail) = placeholder.strip_prefix(b"KEY@@") {
            out.extend_from_slice(PLANTED.as_bytes());
            *rest = tail;
        } else if let Some(tail) = placeholder.strip_prefix(b"HEX ") {
            let end = tail.windows(2).position(|pair| pair == b"@@").unwrap();
            let digits: Vec<u8> = tail[..end].iter().copied().filter(|byte| *byte != b' ').collect();
            let digits = String::from_utf8(digits).unwrap();
            out.extend(
                (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()),
            );
            *rest = &tail[end + 2..];
        } else if let Some(tail) = placeholder.strip_prefix(b"REPEAT ") {
            let end = tail.iter().position(|byte| *byte == b' ').unwrap();
            let times: usize = std::str::from_utf8(&tail[..end]).unwrap().parse().unwrap();
            *rest = &tail[end + 1..];
            let text = expand(rest, true);
            out.extend(text.repeat(times));
        } else {
            assert!(inside, "`@@` without a word that is known");
            return out;
        }
    }
    out
}

#[test]
fn placeholders_are_expanded() {
    let case = |source: &[u8]| Case { name: String::new(), source: source.to_vec() };
    let text = case(b"a@@REPEAT 3 b@@HEX 0a@@@@c @@REPEAT 2 [@@@@REPEAT 2 ]@@ @@KEY@@ @@OUTSIDE@@")
        .content(Path::new("/o"));
    assert_eq!(String::from_utf8(text).unwrap(), format!("ab\nb\nb\nc [[]] {PLANTED} /o"));
    let (message, then) =
        case(b"# then: repeat x\\n\nPOST /\ncontent-length: @@LENGTH@@\n\n@@REPEAT 4 b\n@@").message();
    assert_eq!(String::from_utf8(message).unwrap(), "POST /\r\ncontent-length: 8\r\n\r\nb\nb\nb\nb\n");
    assert_eq!(then, Then::Repeat(b"x\n".to_vec()));
}
