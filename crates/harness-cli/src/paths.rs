//! Paths for display.

use std::path::PathBuf;
use std::sync::Arc;

use harness::descriptor::Place;
use harness::descriptor::check::Diagnostic;

/// Shortens paths below the current directory.
pub(crate) struct Paths {
    /// The current directory with a trailing separator; `None` if it has no real path.
    here: Option<String>,
}

impl Paths {
    /// Uses the current directory.
    pub(crate) fn here() -> Self {
        let folder = PathBuf::from(".").canonicalize().ok();
        Self { here: folder.and_then(|folder| Some(format!("{}/", folder.to_str()?))) }
    }

    /// Shortens the paths in a text that are below the current directory.
    pub(crate) fn short(&self, text: &str) -> String {
        self.here.as_ref().map_or_else(|| text.to_owned(), |here| text.replace(here.as_str(), ""))
    }

    /// Shortens the places of a diagnostic and the paths in its message.
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
