//! Finished collections: what tags and merge keys make of them.

use std::borrow::Cow;

use super::fault::YamlFault;
use super::reader::Builder;
use super::stop::Stop;
use super::tags::Known;
use crate::document::{Bytes, Entry, Kind, NodeId, Text};

impl<'src> Builder<'src> {
    /// Checks a collection against its tag; `None` when it does not fit.
    pub(super) fn tagged_collection(&mut self, known: Known, kind: Kind) -> Option<Kind> {
        match (known, kind) {
            (Known::Set, Kind::Map(entries)) => {
                let all_null = entries.iter().all(|entry| self.document.is_null(entry.value));
                all_null.then_some(Kind::Map(entries))
            }
            (Known::Omap, Kind::List(items)) => {
                let mut keys = Vec::with_capacity(items.len());
                for item in &items {
                    keys.push(self.document.resolve(&self.only_entry(*item)?.key).to_owned());
                }
                keys.sort_unstable();
                let unique = keys.windows(2).all(|pair| pair.first() != pair.last());
                unique.then_some(Kind::List(items))
            }
            (Known::Pairs, Kind::List(items)) => {
                let mut pairs = Vec::with_capacity(items.len());
                for item in items {
                    let Entry { key, key_bytes, value, .. } = self.only_entry(item)?.clone();
                    let key = self.document.push(Kind::Text(key), key_bytes);
                    let bytes = self.document.bytes(item);
                    pairs.push(self.document.push(Kind::List(vec![key, value]), bytes));
                }
                Some(Kind::List(pairs))
            }
            (_, kind) => Some(kind),
        }
    }

    fn only_entry(&self, id: NodeId) -> Option<&Entry> {
        match self.document.kind(id) {
            Kind::Map(entries) => match entries.as_slice() {
                [entry] => Some(entry),
                _ => None,
            },
            Kind::Null
            | Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Instant(_)
            | Kind::Text(_)
            | Kind::List(_) => None,
        }
    }

    /// `<<`: copies keys that the mapping does not have yet; earlier sources win.
    pub(super) fn merge(&mut self, source: NodeId, bytes: Bytes) -> Result<(), Stop> {
        let sources = self.document.list(source).map_or_else(|| vec![source], <[NodeId]>::to_vec);
        for source in sources {
            let entries: Vec<(Cow<'src, str>, NodeId)> = match self.document.kind(source) {
                Kind::Map(entries) => {
                    entries.iter().map(|entry| (key_text(self.source, entry), entry.value)).collect()
                }
                // A list within the list of sources is an object with index keys upstream.
                Kind::List(items) => {
                    items.iter().enumerate().map(|(at, item)| (at.to_string().into(), *item)).collect()
                }
                Kind::Instant(_) => Vec::new(),
                Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                    return Err(Stop::yaml(YamlFault::MergeSource, self.document.bytes(source)));
                }
            };
            self.merged += entries.len() as u64;
            if self.merged > self.max_values {
                return Err(Stop::too_large("count of merged keys", self.max_values, self.merged, bytes));
            }
            for (name, value) in entries {
                if self.find(&name).is_none() {
                    self.add(name, bytes, value, true);
                }
            }
        }
        Ok(())
    }
}

/// The text of a key for as long as the source lives.
pub(super) fn key_text<'src>(source: &'src str, entry: &Entry) -> Cow<'src, str> {
    match &entry.key {
        Text::Source(Bytes { start, end }) => {
            Cow::Borrowed(source.get(*start as usize..*end as usize).unwrap_or_default())
        }
        Text::Shared(key) => Cow::Owned(key.to_string()),
    }
}
