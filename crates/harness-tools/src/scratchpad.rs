//! Notes that a model keeps for itself, as files in memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::tool::{ArgumentFault, DynTool, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::{Json, Origin};
use serde::Serialize;
use serde_json::json;

use crate::arguments::{Arguments, Refused, checked};
use crate::exact::{NotOk, answered};
use crate::state::{Keep, Kept, MOST_KEPT};
use crate::tool_set::ToolSet;

/// How many files a scratchpad has at most, and how long a path may be.
const MOST_FILES: usize = 1_000;
const MOST_PATH: usize = 1_024;

/// The tools `scratch_list`, `scratch_read`, `scratch_write` and `scratch_edit`: files in memory.
///
/// There is one scratchpad per run ([`Keep::Run`]) or per conversation, with at most 1,000 files, 64 KiB in
/// one and 256 KiB in all unless [`ScratchpadTools::with_bounds`] says otherwise; those of the 50 latest
/// runs are kept. Wrong arguments are `invalid_input`; everything else is a success with
/// `{"ok": false, "error": …}`.
#[derive(Clone, Debug)]
pub struct ScratchpadTools {
    pads: Arc<Kept<Pad>>,
    max_file: usize,
    max_total: usize,
}

impl Default for ScratchpadTools {
    fn default() -> Self {
        Self::new(Keep::Run)
    }
}

impl ScratchpadTools {
    /// Scratchpads that are kept so long.
    pub fn new(keep: Keep) -> Self {
        Self { pads: Arc::new(Kept::new(keep, MOST_KEPT)), max_file: 65_536, max_total: 262_144 }
    }

    /// The same with other bounds, in bytes of UTF-8.
    #[must_use]
    pub fn with_bounds(mut self, file: usize, total: usize) -> Self {
        self.max_file = file;
        self.max_total = total;
        self
    }

    /// Lets go of the scratchpad of a run or conversation.
    pub fn forget(&self, origin: &Origin) {
        self.pads.forget(origin);
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        ToolSet::new([Kind::List, Kind::Read, Kind::Write, Kind::Edit].map(|kind| {
            Arc::new(ScratchTool { kind, def: kind.def(), shared: self.clone() }) as Arc<dyn DynTool>
        }))
    }
}

#[derive(Debug, Default)]
struct Pad(BTreeMap<String, String>);

#[derive(Clone, Copy)]
enum Kind {
    List,
    Read,
    Write,
    Edit,
}

impl Kind {
    fn def(self) -> ToolDef {
        let (text, filled) = (json!({ "type": "string" }), json!({ "type": "string", "minLength": 1 }));
        let (name, description, required, properties) = match self {
            Self::List => ("scratch_list", "Lists the notes.", &[][..], json!({ "prefix": text })),
            Self::Read => ("scratch_read", "Reads a note.", &["path"][..], json!({ "path": filled })),
            Self::Write => (
                "scratch_write",
                "Writes a note; what it held before is replaced.",
                &["path", "content"][..],
                json!({ "path": filled, "content": text }),
            ),
            Self::Edit => {
                let all = "If true, replace every occurrence of old_string. If false, old_string must occur \
                           exactly once.";
                (
                    "scratch_edit",
                    "Replaces a text in a note.",
                    &["path", "old_string", "new_string"][..],
                    json!({
                        "path": filled,
                        "old_string": filled,
                        "new_string": text,
                        "replace_all": { "type": "boolean", "description": all },
                    }),
                )
            }
        };
        let schema = if required.is_empty() {
            json!({ "type": "object", "properties": properties })
        } else {
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let class =
            if matches!(self, Self::List | Self::Read) { RetryClass::Pure } else { RetryClass::Unsafe };
        let def = ToolDef::new(name, description).with_schema(schema.into());
        def.with_class(class).into_internal()
    }
}

/// What is asked for, checked.
enum Ask {
    List { prefix: String },
    Read { path: String },
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String, all: bool },
}

struct ScratchTool {
    kind: Kind,
    def: ToolDef,
    shared: ScratchpadTools,
}

impl ScratchTool {
    fn ask(&self, arguments: &Json) -> Result<Ask, Refused> {
        let arguments = Arguments::of(arguments)?;
        let text = |key: &str| checked::text(key, arguments.get(key)).map(str::to_owned);
        let filled = |key: &str| checked::filled(key, arguments.get(key)).map(str::to_owned);
        Ok(match self.kind {
            Kind::List if arguments.get("prefix").is_none() => Ask::List { prefix: String::new() },
            Kind::List => Ask::List { prefix: text("prefix")? },
            Kind::Read => Ask::Read { path: filled("path")? },
            Kind::Write => Ask::Write { path: filled("path")?, content: text("content")? },
            Kind::Edit => Ask::Edit {
                path: filled("path")?,
                old: filled("old_string")?,
                new: text("new_string")?,
                all: checked::flag("replace_all", arguments.get("replace_all"))?,
            },
        })
    }

    fn answer(&self, pad: &mut Pad, ask: Ask) -> Result<ToolOutcome, String> {
        match ask {
            Ask::List { prefix } => Ok(answered(&Listed { ok: true, paths: pad.below(&prefix) })),
            Ask::Read { path } => {
                let content = pad.0.get(&path).ok_or_else(|| format!("Not found: {path}"))?;
                Ok(answered(&Read { ok: true, content }))
            }
            Ask::Write { path, content } => {
                let bytes = self.put(pad, &path, content)?;
                Ok(answered(&Written { ok: true, path: &path, replacements: None, bytes }))
            }
            Ask::Edit { path, old, new, all } => {
                let content = pad.0.get(&path).ok_or_else(|| format!("Not found: {path}"))?;
                let found = content.matches(&*old).count();
                if !all && found != 1 {
                    return Err(format!(
                        "old_string must occur exactly once when replace_all=false (found {found})."
                    ));
                }
                self.check_bytes(pad, &path, content.len() - found * old.len() + found * new.len())?;
                let content = content.replace(&*old, &new);
                let bytes = self.put(pad, &path, content)?;
                Ok(answered(&Written { ok: true, path: &path, replacements: Some(found), bytes }))
            }
        }
    }

    /// Looks at the bounds before anything of that size is made.
    fn check_bytes(&self, pad: &Pad, path: &str, bytes: usize) -> Result<(), String> {
        let ScratchpadTools { max_file, max_total, .. } = self.shared;
        if bytes > max_file {
            return Err(format!("File too large: {bytes} bytes; max {max_file}."));
        }
        let others: usize =
            pad.0.iter().filter(|(known, _)| *known != path).map(|(_, text)| text.len()).sum();
        if others + bytes > max_total {
            return Err(format!("Scratchpad full: {} bytes would exceed max {max_total}.", others + bytes));
        }
        Ok(())
    }

    fn put(&self, pad: &mut Pad, path: &str, content: String) -> Result<usize, String> {
        let bytes = content.len();
        self.check_bytes(pad, path, bytes)?;
        if path.len() > MOST_PATH {
            return Err(format!("Path too long: {} bytes; max {MOST_PATH}.", path.len()));
        }
        if pad.0.len() >= MOST_FILES && !pad.0.contains_key(path) {
            return Err(format!("Scratchpad full: it has {MOST_FILES} files."));
        }
        pad.0.insert(path.to_owned(), content);
        Ok(bytes)
    }
}

impl Pad {
    fn below(&self, prefix: &str) -> Vec<&str> {
        let mut paths: Vec<&str> =
            self.0.keys().map(String::as_str).filter(|p| p.starts_with(prefix)).collect();
        paths.sort_by(|a, b| as_in_a_dictionary(a, b));
        paths
    }
}

#[derive(Serialize)]
struct Listed<'p> {
    ok: bool,
    paths: Vec<&'p str>,
}

#[derive(Serialize)]
struct Read<'p> {
    ok: bool,
    content: &'p str,
}

#[derive(Serialize)]
struct Written<'p> {
    ok: bool,
    path: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<usize>,
    bytes: usize,
}

impl Tool for ScratchTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.ask(arguments).map(|_| ()).map_err(Into::into)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        match self.ask(&cx.call.arguments) {
            Err(refused) => refused.outcome(),
            Ok(ask) => self.shared.pads.with(&cx.origin, |pad| {
                self.answer(pad, ask).unwrap_or_else(|error| answered(&NotOk::new(error)))
            }),
        }
    }
}

/// The order of a dictionary, as near as it gets to a comparison by locale without tables of all scripts:
/// signs, digits, letters; accents and case only between words that are equal without them.
fn as_in_a_dictionary(a: &str, b: &str) -> Ordering {
    let primary = |text: &str| text.chars().map(base).collect::<Vec<_>>();
    let accents = |text: &str| text.chars().map(|c| (!c.is_ascii(), c.is_uppercase())).collect::<Vec<_>>();
    primary(a).cmp(&primary(b)).then_with(|| accents(a).cmp(&accents(b))).then_with(|| a.cmp(b))
}

/// The class of a character, and the character without accent and case.
fn base(c: char) -> (u8, char) {
    const ACCENTED: [(&str, char); 8] = [
        ("àáâãäåāăą", 'a'),
        ("çćč", 'c'),
        ("èéêëēęě", 'e'),
        ("ìíîïī", 'i'),
        ("ñńň", 'n'),
        ("òóôõöøō", 'o'),
        ("ùúûüūů", 'u'),
        ("ýÿ", 'y'),
    ];
    let small = c.to_lowercase().next().unwrap_or(c);
    let plain = ACCENTED.iter().find(|(all, _)| all.contains(small)).map_or(small, |(_, plain)| *plain);
    let class = if plain.is_alphabetic() { 2 } else { u8::from(plain.is_numeric()) };
    (class, plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_the_order_of_a_dictionary() {
        let mut paths = ["b", "B", "10", "9", "é", "e", "E", "f", "_", "ab", "ä", "a/b", "a"];
        paths.sort_by(|a, b| as_in_a_dictionary(a, b));
        assert_eq!(paths, ["_", "10", "9", "a", "ä", "a/b", "ab", "b", "B", "e", "E", "é", "f"]);
    }
}
