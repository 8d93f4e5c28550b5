//! `harness session`.

mod compact;
mod export;
mod fork;
#[cfg(feature = "encryption")]
mod key;
#[cfg(not(feature = "encryption"))]
#[path = "no_key.rs"]
mod key;
mod label;
mod list;
mod repair;
mod search;
mod show;

use std::path::Path;

use harness::core::EntryId;
use harness::session::{Error, Leaf, Location, OpenOptions, Tree};

pub(crate) use self::key::use_key;

use crate::args::{SessionArgs, SessionVerb};
use crate::error::CliError;
use crate::exit::Exit;

/// Does what the verb says.
pub(crate) fn session(args: &SessionArgs) -> Result<Exit, CliError> {
    let done = match &args.verb {
        SessionVerb::List(args) => list::list(args),
        SessionVerb::Search(args) => search::search(args),
        SessionVerb::Key(args) => key::create(args),
        SessionVerb::Show(args) => show::show(args),
        SessionVerb::Repair(args) => repair::repair(args),
        SessionVerb::Compact(args) => compact::compact(args),
        SessionVerb::Export(args) => export::export(args),
        SessionVerb::Fork(args) => fork::fork(args),
        SessionVerb::Label(args) => label::label(args),
    };
    done.map_err(|error| {
        if let CliError::Session(Error::NotFound { path }) = error {
            return CliError::NoSession { path };
        }
        error
    })
}

/// How this program opens sessions.
pub(crate) fn options() -> OpenOptions {
    key::with_key(OpenOptions::new().program("harness", env!("CARGO_PKG_VERSION")))
}

/// Default name of a session: its thread, or its file name without extension.
pub(crate) fn stem(path: &Path) -> String {
    match Location::of(path) {
        Location::Thread { name, .. } => name,
        Location::File(path) | Location::Database(path) => {
            path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
        }
    }
}

/// Reads a session without becoming its owner.
fn read(path: &Path) -> Result<Tree, CliError> {
    Ok(Tree::read(path, &options())?)
}

/// Returns the entry of that name, which must exist.
fn entry(tree: &Tree, path: &Path, name: Option<&str>) -> Result<Option<EntryId>, CliError> {
    match name.map(EntryId::from) {
        Some(id) if tree.get(&id).is_none() => Err(Error::UnknownEntry { path: path.into(), id }.into()),
        id => Ok(id),
    }
}

/// The leaf that an entry stands for; the last one without any.
fn leaf(id: Option<&EntryId>) -> Leaf<'_> {
    id.map_or(Leaf::Last, Leaf::At)
}
