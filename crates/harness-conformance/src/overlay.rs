//! Where the product's rule differs from a vector: our result, with the rule and the reason.
//!
//! `overlays/<kind>.json` beside the vectors. An overlay that no vector needs is a failure, so that the list says
//! neither more nor less than what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::Done;
use crate::vector::{OVERLAYS, Vector};

/// The only version of the format.
const VERSION: u32 = 1;

/// All overlays of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    kind: String,
    /// Each rule by its name, in a sentence.
    rules: BTreeMap<String, String>,
    vectors: Vec<Overlay>,
}

/// The product's results for one vector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overlay {
    /// The vector's, after its file's name and `#` where the file holds cases.
    id: String,
    /// The name of the rule that makes the difference.
    pub(crate) rule: String,
    /// Differences in this vector.
    reason: String,
    /// Values that replace or add, by JSON pointer.
    #[serde(default)]
    ours: BTreeMap<String, Value>,
    /// JSON pointers to what is not there; removed afterwards, highest index first.
    #[serde(default)]
    absent: Vec<String>,
}

/// The overlays of some directories.
#[derive(Debug, Default)]
pub(crate) struct Overlays {
    files: Vec<File>,
}

impl Overlays {
    /// Reads the overlays beside the vectors of `directory`; there may be none.
    pub(crate) fn load(directory: &Path) -> Done<Self> {
        let directory = directory.join(OVERLAYS);
        let mut files = Vec::new();
        if directory.is_dir() {
            let unreadable = |error| format!("{}: {error}", directory.display());
            for entry in fs::read_dir(&directory).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                let text = fs::read_to_string(&path).map_err(|error| error.to_string());
                let file = text.and_then(|text| File::parse(&text));
                files.push(file.map_err(|fault| format!("{}: {fault}", path.display()))?);
            }
        }
        files.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(Self { files })
    }

    /// These and others.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.files.extend(others.files);
        self
    }

    /// The overlay of a vector.
    pub(crate) fn of(&self, vector: &Vector) -> Option<&Overlay> {
        let id = vector.overlay_id();
        let of_kind = self.files.iter().filter(|file| file.kind == vector.kind);
        of_kind.flat_map(|file| &file.vectors).find(|overlay| overlay.id == id)
    }

    /// The sentence of a rule.
    pub(crate) fn rule(&self, kind: &str, name: &str) -> Option<&str> {
        let mut of_kind = self.files.iter().filter(|file| file.kind == kind);
        of_kind.find_map(|file| file.rules.get(name)).map(String::as_str)
    }

    /// Overlays of no vector.
    pub(crate) fn strays(&self, vectors: &[Vector]) -> Vec<String> {
        let known: BTreeSet<(&str, String)> =
            vectors.iter().map(|vector| (vector.kind.as_str(), vector.overlay_id())).collect();
        let overlays =
            self.files.iter().flat_map(|file| file.vectors.iter().map(|one| (&file.kind, &one.id)));
        let strays = overlays.filter(|(kind, id)| !known.contains(&(kind.as_str(), (*id).clone())));
        strays.map(|(kind, id)| format!("an overlay of kind `{kind}` names no vector: `{id}`")).collect()
    }
}

impl File {
    fn parse(text: &str) -> Done<Self> {
        let file: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.version != VERSION {
            return Err(format!("version {}: only {VERSION} is known", file.version));
        }
        let mut ids = BTreeSet::new();
        for Overlay { id, rule, reason, ours, absent } in &file.vectors {
            if !file.rules.contains_key(rule) {
                return Err(format!("`{id}`: no rule `{rule}`"));
            }
            if reason.is_empty() || (ours.is_empty() && absent.is_empty()) {
                return Err(format!("`{id}`: an overlay has a reason and something that is ours"));
            }
            if !ids.insert(id) {
                return Err(format!("`{id}` has two overlays"));
            }
        }
        let unused = file.rules.keys().find(|name| file.vectors.iter().all(|one| one.rule != **name));
        unused.map_or(Ok(()), |name| Err(format!("no vector differs by rule `{name}`")))?;
        Ok(file)
    }
}

impl Overlay {
    /// The vector with our result.
    pub(crate) fn apply(&self, vector: &Vector) -> Done<Vector> {
        let mut value = vector.value.clone();
        // Elements that are added stand in their order, though `/10` is written before `/9`.
        let mut ours: Vec<_> = self.ours.iter().collect();
        ours.sort_by_key(|(pointer, _)| steps(pointer));
        for (pointer, ours) in ours {
            put(&mut value, pointer, ours)?;
        }
        let mut absent: Vec<&String> = self.absent.iter().collect();
        absent.sort_by_key(|pointer| std::cmp::Reverse(steps(pointer)));
        for pointer in absent {
            remove(&mut value, pointer)?;
        }
        Ok(vector.with(value))
    }
}

/// The last step of a pointer, and the rest before it.
fn split<'v>(value: &'v mut Value, pointer: &str) -> Done<(&'v mut Value, String)> {
    let unknown = || format!("overlay: the vector has no `{pointer}`");
    let (parent, last) = pointer.rsplit_once('/').ok_or_else(unknown)?;
    let parent = value.pointer_mut(parent).ok_or_else(unknown)?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn put(value: &mut Value, pointer: &str, ours: &Value) -> Done<()> {
    if value.pointer(pointer) == Some(ours) {
        return Err(format!("overlay: `{pointer}` is the same in the vector"));
    }
    let (parent, step) = split(value, pointer)?;
    if let Some(map) = parent.as_object_mut() {
        map.insert(step, ours.clone());
        return Ok(());
    }
    let elements =
        parent.as_array_mut().ok_or_else(|| format!("overlay: no value is possible at `{pointer}`"))?;
    let at = step.parse::<usize>().ok();
    if at == Some(elements.len()) {
        elements.push(ours.clone());
        return Ok(());
    }
    let element = at.and_then(|at| elements.get_mut(at));
    element.ok_or_else(|| format!("overlay: `{pointer}` is beyond the end of its list"))?.clone_from(ours);
    Ok(())
}

fn remove(value: &mut Value, pointer: &str) -> Done<()> {
    let (parent, step) = split(value, pointer)?;
    let removed = match step.parse::<usize>() {
        Ok(at) if parent.get(at).is_some() => parent.as_array_mut().map(|elements| elements.remove(at)),
        _ => parent.as_object_mut().and_then(|map| map.shift_remove(&step)),
    };
    removed.map(drop).ok_or_else(|| format!("overlay: the vector has no `{pointer}`"))
}

/// A pointer as something to sort by: numbers by their value.
fn steps(pointer: &str) -> Vec<(usize, &str)> {
    pointer.split('/').map(|step| (step.parse().unwrap_or_default(), step)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(vectors: Value) -> Done<File> {
        let rules = json!({ "one-rule": "It is so." });
        File::parse(&json!({ "version": 1, "kind": "turn", "rules": rules, "vectors": vectors }).to_string())
    }

    /// The vector `a` with an overlay, or why there is none.
    #[track_caller]
    fn check(ours: Value, absent: Value, expected: Done<Value>) {
        let overlay =
            json!({ "id": "a", "rule": "one-rule", "reason": "so", "ours": ours, "absent": absent });
        let overlays = Overlays { files: vec![file(json!([overlay])).unwrap()] };
        let vector = Vector::made("turn", json!({ "id": "a", "list": [1, 2, 3], "map": { "k/": null } }));
        let made = overlays.of(&vector).unwrap().apply(&vector).map(|vector| vector.value);
        assert_eq!(made, expected);
    }

    #[test]
    fn ours_replaces_and_adds_and_what_is_absent_goes_afterwards() {
        check(
            json!({ "/list/0": 0, "/list/3": 4, "/map/k~1": 1, "/map/new": [] }),
            json!(["/list/1", "/list/2"]),
            Ok(json!({ "id": "a", "list": [0, 4], "map": { "k/": 1, "new": [] } })),
        );
    }

    #[test]
    fn what_changes_nothing_or_points_nowhere_is_refused() {
        let refused = |text: &str| Err(format!("overlay: {text}"));
        check(json!({ "/list/0": 1 }), json!([]), refused("`/list/0` is the same in the vector"));
        check(json!({ "/list/4": 1 }), json!([]), refused("`/list/4` is beyond the end of its list"));
        check(json!({ "/none/x": 1 }), json!([]), refused("the vector has no `/none/x`"));
        check(json!({ "/id/x": 1 }), json!([]), refused("no value is possible at `/id/x`"));
        check(json!({}), json!(["/list/3"]), refused("the vector has no `/list/3`"));
        check(json!({}), json!(["/map/x"]), refused("the vector has no `/map/x`"));
    }

    #[test]
    fn the_page_of_deviations_has_every_rule() {
        let page = include_str!("../../../docs/design/deviations.md");
        let overlays = Overlays::load(&crate::own_directory()).unwrap();
        for (name, sentence) in overlays.files.iter().flat_map(|file| &file.rules) {
            assert!(page.contains(&format!("| `{name}` | {sentence} |")), "no row for rule `{name}`");
        }
    }

    #[test]
    fn a_file_names_its_rules_and_each_vector_once() {
        #[track_caller]
        fn check(vectors: Value, expected: &str) {
            assert_eq!(file(vectors).unwrap_err(), expected);
        }
        let one = |id: &str, rule: &str| json!({ "id": id, "rule": rule, "reason": "so", "absent": ["/x"] });
        check(json!([one("a", "other")]), "`a`: no rule `other`");
        check(json!([one("a", "one-rule"), one("a", "one-rule")]), "`a` has two overlays");
        check(json!([]), "no vector differs by rule `one-rule`");
        check(
            json!([{ "id": "a", "rule": "one-rule", "reason": "so" }]),
            "`a`: an overlay has a reason and something that is ours",
        );
        let overlays = Overlays { files: vec![file(json!([one("a", "one-rule")])).unwrap()] };
        let others = [Vector::made("turn", json!({ "id": "b" }))];
        assert_eq!(overlays.strays(&others), ["an overlay of kind `turn` names no vector: `a`"]);
    }
}
