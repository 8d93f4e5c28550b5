//! Last results of eventual layers.

use std::sync::Arc;

use super::def::LayerId;
use super::flow::Output;
use super::recent::Recent;

/// Last result of an eventual layer.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Shown content; `None` is nothing.
    pub(crate) output: Option<Output>,
    /// Whether its state changed since.
    pub(crate) is_stale: bool,
}

/// The last results of eventual layers by scope and layer, bounded.
#[derive(Clone)]
pub(crate) struct EventualCache(Recent<(Arc<str>, LayerId), Kept>);

impl EventualCache {
    pub(crate) fn new(cap: usize) -> Self {
        Self(Recent::new(cap))
    }

    /// The last result, fresh or stale.
    pub(crate) fn get(&mut self, key: &(Arc<str>, LayerId)) -> Option<Kept> {
        self.0.get_mut(key).map(|kept| kept.clone())
    }

    /// A fresh result; nothing is a result, too.
    pub(crate) fn put(&mut self, key: (Arc<str>, LayerId), output: Option<Output>) {
        self.0.insert(key, Kept { output, is_stale: false });
    }

    /// The state changed: the next recall asks the layer.
    pub(crate) fn mark_stale(&mut self, key: &(Arc<str>, LayerId)) {
        if let Some(kept) = self.0.get_mut(key) {
            kept.is_stale = true;
        }
    }
}
