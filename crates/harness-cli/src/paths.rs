//! Paths as a person at a terminal writes them.

use std::path::PathBuf;
use std::sync::Arc;

use harness::descriptor::Place;
use harness::descriptor::check::Diagnostic;

/// Shortens paths below the current folder.
pub(crate) struct Paths {
    /// The current folder with a separator behind it; `None` where it has no real path.
    here: Option<String>,
}

impl Paths {
    /// Paths from the current folder on.
    pub(crate) fn here() -> Self {
        let folder = PathBuf::from(".").canonicalize().ok();
        Self { here: folder.and_then(|folder| Some(format!("{}/", folder.to_str()?))) }
    }

    /// A text with the paths in it that lie below the current folder.
    pub(crate) fn short(&self, text: &str) -> String {
        self.here.as_ref().map_or_else(|| text.to_owned(), |here| text.replace(here.as_str(), ""))
    }

    /// Makes the places of a diagnostic relative, and the paths that its message names.
    pub(crate) fn shorten(&self, diagnostic: &mut Diagnostic) {
        let Some(here) = &self.here else { return };
        diagnostic.message = diagnostic.message.replace(&format!("`{here}"), "`");
        let own = diagnostic.place.iter_mut();
        for place in own.chain(diagnostic.related.iter_mut().map(|related| &mut related.place)) {
            shorten_place(place, here);
        }
    }
}

fn shorten_place(place: &mut Place, here: &str) {
    if let Some(rest) = place.file.strip_prefix(here) {
        place.file = Arc::from(rest);
    }
}
