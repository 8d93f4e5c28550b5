//! Events of a stream that cannot be read.

/// Characters of the first one that are kept, to be shown.
const SHOWN: usize = 200;

/// Events that are not JSON of the protocol: their number, and the beginning of the first.
///
/// They may have contained a part of the answer, so an answer with one of them is not used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Undecoded {
    pub(crate) count: u64,
    first: String,
}

impl Undecoded {
    /// Notes an event.
    pub(crate) fn note(&mut self, data: &str) {
        if self.count == 0 {
            self.first = data.chars().take(SHOWN).collect();
            if data.chars().nth(SHOWN).is_some() {
                self.first.push('…');
            }
        }
        self.count = self.count.saturating_add(1);
    }

    /// The beginning of the first one, unless there is none.
    pub(crate) fn first(&self) -> Option<&str> {
        (self.count > 0).then_some(self.first.as_str())
    }
}
