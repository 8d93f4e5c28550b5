//! Size of a document with every alias expanded.

use super::fault::{YamlError, YamlFault};
use super::limits::YamlLimits;
use crate::document::{Document, Kind, NodeId};

#[derive(Clone, Copy, Default)]
struct Size {
    values: u64,
    text: u64,
    depth: u32,
}

/// Bounds the values, the text and the depth of a document with aliases followed.
///
/// Children have smaller numbers than their parents, so one pass over the nodes is enough.
pub(super) fn check(document: &Document, limits: &YamlLimits) -> Result<(), YamlError> {
    let mut sizes: Vec<Size> = Vec::with_capacity(document.len());
    for id in document.ids() {
        let mut size = Size { values: 1, ..Size::default() };
        let mut add = |child: NodeId| {
            let child = sizes.get(child.index()).copied().unwrap_or_default();
            size.values = size.values.saturating_add(child.values);
            size.text = size.text.saturating_add(child.text);
            size.depth = size.depth.max(child.depth + 1);
        };
        match document.kind(id) {
            Kind::List(items) => items.iter().copied().for_each(&mut add),
            Kind::Map(entries) => {
                let mut keys = 0;
                for entry in entries {
                    add(entry.value);
                    keys += document.resolve(&entry.key).len() as u64;
                }
                size.text = size.text.saturating_add(keys);
            }
            Kind::Text(text) => size.text = document.resolve(text).len() as u64,
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Instant(_) => {}
        }
        let over = [
            ("count of values, aliases followed,", size.values, limits.values),
            ("text in bytes, aliases followed,", size.text, limits.text),
            ("nesting in levels, aliases followed,", size.depth.into(), limits.depth().into()),
        ];
        if let Some((what, actual, limit)) = over.into_iter().find(|(_, actual, limit)| actual > limit) {
            let fault = YamlFault::TooLarge { what, limit, actual };
            return Err(YamlError { fault, place: Some(document.place(id)) });
        }
        sizes.push(size);
    }
    Ok(())
}
