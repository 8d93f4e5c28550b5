//! Whether the source of a result is still as it was.

use serde::{Deserialize, Serialize};

/// By what one sees that the source of a result has changed.
///
/// ```
/// use harness_memory::compact::durability::DeterminismMetadata;
///
/// let read = DeterminismMetadata { mtime: Some(5.5), ..DeterminismMetadata::default() };
/// assert!(!read.has_changed(&read.clone()));
/// assert!(read.has_changed(&DeterminismMetadata::default()), "nothing to compare is a change");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeterminismMetadata {
    /// [`crate::compact::content_hash`] of the source.
    pub content_hash: Option<String>,
    /// The entity tag of a remote source.
    pub etag: Option<String>,
    /// When the source was last changed, in seconds since 1970.
    pub mtime: Option<f64>,
    /// The version of the source, or of the interface that gave it.
    pub version: Option<String>,
}

impl DeterminismMetadata {
    /// Whether the source has changed. The hash counts if both have one, else the tag, else the version, else
    /// the time; when nothing can be compared it counts as changed. An empty text or time is none.
    pub fn has_changed(&self, current: &Self) -> bool {
        fn both<'a>(was: Option<&'a String>, is: Option<&'a String>) -> Option<(&'a str, &'a str)> {
            let filled = |text: Option<&'a String>| text.map(String::as_str).filter(|text| !text.is_empty());
            filled(was).zip(filled(is))
        }
        let texts = both(self.content_hash.as_ref(), current.content_hash.as_ref())
            .or_else(|| both(self.etag.as_ref(), current.etag.as_ref()))
            .or_else(|| both(self.version.as_ref(), current.version.as_ref()));
        if let Some((was, is)) = texts {
            return was != is;
        }
        match (self.mtime.map(f64::to_bits), current.mtime.map(f64::to_bits)) {
            (Some(was), Some(is)) if was != 0 && is != 0 => was != is,
            _ => true,
        }
    }
}
