//! Finding changes.
//!
//! Every comparison reports something if its two values differ: what no rule names is reported as
//! a change of the whole.

use std::borrow::Cow;
use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::change::{Aspect, Change, DescriptorDiff, Difference, Subject};
use crate::canonical::DescriptorHash;
use crate::descriptor::Descriptor;
use crate::value::{Map, Value};

/// Lists whose lengths multiplied are above this are compared as a whole.
const MAX_LIST_WORK: usize = 4_000_000;

/// Compares two descriptors.
pub fn diff(before: &Descriptor, after: &Descriptor) -> DescriptorDiff {
    let (old_hash, new_hash) = (before.hash(), after.hash());
    let mut comparison = Comparison { changes: Vec::new() };
    if old_hash != new_hash {
        comparison.root(&hashed_value(before), &hashed_value(after));
    }
    let old: HashMap<&str, DescriptorHash> = before.agent_hashes().collect();
    let affected = after.agent_hashes().filter(|(id, hash)| old.get(id).is_some_and(|old| old != hash));
    DescriptorDiff {
        before: old_hash.to_string(),
        after: new_hash.to_string(),
        affected_agents: affected.map(|(id, _)| id.to_owned()).collect(),
        changes: comparison.changes,
    }
}

impl Descriptor {
    /// Compares this descriptor with a later one; see [`diff()`].
    pub fn diff(&self, after: &Self) -> DescriptorDiff {
        diff(self, after)
    }
}

/// A descriptor as far as it is hashed.
fn hashed_value(descriptor: &Descriptor) -> Value {
    // Canonical text is JSON, so this cannot fail; if it did, everything would count as changed.
    serde_json::from_str(&descriptor.canonical_text()).unwrap_or_else(|_| descriptor.to_value())
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

struct Comparison {
    changes: Vec<Change>,
}

impl Comparison {
    fn push(&mut self, subject: &Subject, aspect: Aspect, pair: Pair<'_>) {
        let difference = match pair {
            (None, None) => return,
            (None, Some(after)) => Difference::Added { after: after.clone() },
            (Some(before), None) => Difference::Removed { before: before.clone() },
            (Some(before), Some(after)) if before == after => return,
            (Some(before), Some(after)) => {
                Difference::Changed { before: before.clone(), after: after.clone() }
            }
        };
        self.changes.push(Change { subject: subject.clone(), aspect, difference });
    }

    /// Compares by a rule, and as a whole if the rule finds nothing although the values differ.
    fn by(&mut self, subject: &Subject, aspect: Aspect, pair: Pair<'_>, rule: impl FnOnce(&mut Self)) {
        if pair.0 == pair.1 {
            return;
        }
        let known = self.changes.len();
        rule(self);
        if self.changes.len() == known {
            self.push(subject, aspect, pair);
        }
    }

    fn root(&mut self, before: &Value, after: &Value) {
        let pair = (Some(before), Some(after));
        self.by(&Subject::Section(String::new()), Aspect::Whole, pair, |this| {
            const ORDER: [&str; 8] = [
                "descriptor_version",
                "metadata",
                "runtime",
                "context",
                "instruction_parts",
                "tools",
                "agent_defaults",
                "agents",
            ];
            let (Value::Map(before), Value::Map(after)) = (before, after) else { return };
            for key in ORDER {
                this.section(key, (before.get(key), after.get(key)));
            }
            for key in keys(before, after).filter(|key| !ORDER.contains(key)) {
                let subject = Subject::Section(key.to_owned());
                this.nested(&subject, "", (before.get(key), after.get(key)));
            }
        });
    }

    fn section(&mut self, key: &str, pair: Pair<'_>) {
        match key {
            "descriptor_version" => self.push(&Subject::Version, Aspect::Whole, pair),
            "metadata" => self.nested(&Subject::Metadata, "", pair),
            "runtime" => self.nested(&Subject::Runtime, "", pair),
            "context" => self.context(pair),
            "instruction_parts" => {
                self.named(key, pair, Subject::InstructionPart, |this, subject, pair| {
                    this.nested(subject, "", pair);
                });
            }
            "tools" => self.named(key, pair, Subject::Tool, Self::tool),
            "agent_defaults" => self.agent(&Subject::Defaults, pair),
            _ => self.named(key, pair, Subject::Agent, Self::agent),
        }
    }

    fn context(&mut self, pair: Pair<'_>) {
        let subject = Subject::Section("context".to_owned());
        self.by(&subject, Aspect::Whole, pair, |this| {
            let Some((before, after)) = maps(pair) else { return };
            let nested = |this: &mut Self, subject: &Subject, pair: Pair<'_>| this.nested(subject, "", pair);
            for key in keys(&before, &after) {
                let pair = (before.get(key), after.get(key));
                match key {
                    "fields" => this.named("context.fields", pair, Subject::Field, nested),
                    "references" => this.named("context.references", pair, Subject::Reference, nested),
                    _ => this.nested(&Subject::Section(format!("context.{key}")), "", pair),
                }
            }
        });
    }

    /// Compares a section of named entries, each by its rule.
    fn named(
        &mut self,
        section: &str,
        pair: Pair<'_>,
        subject: impl Fn(String) -> Subject,
        rule: impl Fn(&mut Self, &Subject, Pair<'_>),
    ) {
        self.by(&Subject::Section(section.to_owned()), Aspect::Whole, pair, |this| {
            let Some((before, after)) = maps(pair) else { return };
            for key in keys(&before, &after) {
                rule(this, &subject(key.to_owned()), (before.get(key), after.get(key)));
            }
        });
    }

    /// Mappings key by key, everything else as a whole.
    fn nested(&mut self, subject: &Subject, path: &str, pair: Pair<'_>) {
        if let (Some(Value::Map(before)), Some(Value::Map(after))) = pair {
            for key in keys(before, after) {
                let below = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                self.nested(subject, &below, (before.get(key), after.get(key)));
            }
        } else {
            let aspect = if path.is_empty() { Aspect::Whole } else { Aspect::Key(path.to_owned()) };
            self.push(subject, aspect, pair);
        }
    }

    fn tool(&mut self, subject: &Subject, pair: Pair<'_>) {
        let (Some(Value::Map(before)), Some(Value::Map(after))) = pair else {
            return self.push(subject, Aspect::Whole, pair);
        };
        for key in keys(before, after) {
            let pair = (before.get(key), after.get(key));
            match key {
                "target" => self.push(subject, Aspect::Target, pair),
                _ => self.nested(subject, key, pair),
            }
        }
    }

    fn agent(&mut self, subject: &Subject, pair: Pair<'_>) {
        let (Some(Value::Map(before)), Some(Value::Map(after))) = pair else {
            return self.push(subject, Aspect::Whole, pair);
        };
        for key in keys(before, after) {
            let pair = (before.get(key), after.get(key));
            match key {
                "name" => self.push(subject, Aspect::Name, pair),
                "handoffDescription" => self.push(subject, Aspect::HandoffDescription, pair),
                "model" => self.push(subject, Aspect::Model, pair),
                "modelSettings" => self.settings(subject, pair),
                "instructions" => self.instructions(subject, pair),
                "tools" => self.by(subject, Aspect::Tools, pair, |this| this.tools(subject, pair)),
                "handoffs" => self.by(subject, Aspect::Handoffs, pair, |this| this.handoffs(subject, pair)),
                _ => self.nested(subject, key, pair),
            }
        }
    }

    fn settings(&mut self, subject: &Subject, pair: Pair<'_>) {
        let (Some(Value::Map(before)), Some(Value::Map(after))) = pair else {
            return self.push(subject, Aspect::ModelSettings, pair);
        };
        for key in keys(before, after) {
            self.push(subject, Aspect::Setting(key.to_owned()), (before.get(key), after.get(key)));
        }
    }

    fn instructions(&mut self, subject: &Subject, pair: Pair<'_>) {
        self.by(subject, Aspect::Instructions, pair, |this| {
            let (Some(Value::List(before)), Some(Value::List(after))) = pair else { return };
            let Some(steps) = steps(before, after, ToString::to_string) else { return };
            for (old, new) in steps {
                let (before, after) = (at(before, old), at(after, new));
                match (before, after, new.or(old)) {
                    (Some(before), Some(after), Some(index)) => this.part(subject, index, before, after),
                    (before, after, index) => {
                        this.push(subject, Aspect::Part(index.unwrap_or(0)), (before, after));
                    }
                }
            }
        });
    }

    fn part(&mut self, subject: &Subject, index: usize, before: &Value, after: &Value) {
        let pair = (Some(before), Some(after));
        self.by(subject, Aspect::Part(index), pair, |this| {
            let (Value::Map(before), Value::Map(after)) = (before, after) else { return };
            // Keys that parts do not have make it a change of the whole.
            if keys(before, after)
                .any(|key| !matches!(key, "text" | "where") && before.get(key) != after.get(key))
            {
                return;
            }
            this.push(subject, Aspect::Part(index), (before.get("text"), after.get("text")));
            this.push(subject, Aspect::PartCondition(index), (before.get("where"), after.get("where")));
        });
    }

    fn tools(&mut self, subject: &Subject, pair: Pair<'_>) {
        let Some((before, after)) = lists(pair) else { return };
        let Some(steps) = steps(before, after, ToString::to_string) else { return };
        for (old, new) in steps {
            for pair in [(at(before, old), None), (None, at(after, new))] {
                if at(before, old) != at(after, new)
                    && let Some(id) = pair.0.or(pair.1)
                {
                    self.push(subject, Aspect::Tool(plain(id)), pair);
                }
            }
        }
    }

    fn handoffs(&mut self, subject: &Subject, pair: Pair<'_>) {
        let Some((before, after)) = lists(pair) else { return };
        let Some(steps) = steps(before, after, handoff_target) else { return };
        for (old, new) in steps {
            match (at(before, old), at(after, new)) {
                (Some(before), Some(after)) if handoff_target(before) == handoff_target(after) => {
                    self.handoff(subject, before, after);
                }
                (before, after) => {
                    for pair in [(before, None), (None, after)] {
                        if let Some(handoff) = pair.0.or(pair.1) {
                            self.push(subject, Aspect::Handoff(handoff_target(handoff)), pair);
                        }
                    }
                }
            }
        }
    }

    /// Two handoffs to one agent.
    fn handoff(&mut self, subject: &Subject, before: &Value, after: &Value) {
        let to = handoff_target(after);
        let pair = (Some(before), Some(after));
        self.by(subject, Aspect::Handoff(to.clone()), pair, |this| {
            let rest = |handoff: &Value| {
                let keys = handoff.as_map().into_iter().flat_map(Map::iter);
                keys.filter(|(key, _)| !matches!(*key, "agent" | "where")).count()
            };
            if rest(before) == 0 && rest(after) == 0 {
                let condition = (before.get("where"), after.get("where"));
                this.push(subject, Aspect::HandoffCondition(to), condition);
            }
        });
    }
}

/// The keys of two mappings, those of the first before what only the second has.
fn keys<'a>(before: &'a Map, after: &'a Map) -> impl Iterator<Item = &'a str> {
    let new = after.iter().map(|(key, _)| key).filter(|key| before.get(key).is_none());
    before.iter().map(|(key, _)| key).chain(new)
}

/// Two mappings, a missing one taken for empty; `None` if one is something else.
fn maps<'a>(pair: Pair<'a>) -> Option<(Cow<'a, Map>, Cow<'a, Map>)> {
    let map = |value: Option<&'a Value>| match value {
        None => Some(Cow::Owned(Map::new())),
        Some(value) => value.as_map().map(Cow::Borrowed),
    };
    Some((map(pair.0)?, map(pair.1)?))
}

/// Two lists, a missing one taken for empty; `None` if one is something else.
fn lists<'a>(pair: Pair<'a>) -> Option<(&'a [Value], &'a [Value])> {
    let list = |value: Option<&'a Value>| value.map_or(Some(&[][..]), Value::as_list);
    Some((list(pair.0)?, list(pair.1)?))
}

fn at(list: &[Value], index: Option<usize>) -> Option<&Value> {
    list.get(index?)
}

/// The text of a string, or the JSON of anything else.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn handoff_target(handoff: &Value) -> String {
    plain(handoff.get("agent").unwrap_or(handoff))
}

type Step = (Option<usize>, Option<usize>);

/// Which entries of two lists belong together by a key, and which stand alone; `None` if the lists
/// are too long to say.
///
/// Neighbours that were replaced are paired in their order.
fn steps(before: &[Value], after: &[Value], key: impl Fn(&Value) -> String) -> Option<Vec<Step>> {
    if before.len().saturating_mul(after.len()) > MAX_LIST_WORK {
        return None;
    }
    let old: Vec<String> = before.iter().map(&key).collect();
    let new: Vec<String> = after.iter().map(key).collect();
    let mut steps = Vec::with_capacity(old.len().max(new.len()));
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (old, new) = (op.old_range(), op.new_range());
        match op {
            DiffOp::Equal { .. } | DiffOp::Replace { .. } => {
                let count = old.len().max(new.len());
                let nth = |range: &std::ops::Range<usize>, at: usize| {
                    Some(range.start + at).filter(|at| range.contains(at))
                };
                steps.extend((0..count).map(|at| (nth(&old, at), nth(&new, at))));
            }
            DiffOp::Delete { .. } => steps.extend(old.map(|at| (Some(at), None))),
            DiffOp::Insert { .. } => steps.extend(new.map(|at| (None, Some(at)))),
        }
    }
    Some(steps)
}
