//! `harness session`.

mod compact;
mod export;
mod fork;
mod label;
mod list;
mod repair;
mod show;

use std::path::Path;

use harness::core::EntryId;
use harness::session::{Error, Leaf, Limits, Tree};

use crate::args::{SessionArgs, SessionVerb};
use crate::error::CliError;
use crate::exit::Exit;

/// Does what the verb says.
pub(crate) fn session(args: &SessionArgs) -> Result<Exit, CliError> {
    let done = match &args.verb {
        SessionVerb::List(args) => list::list(args),
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

/// Reads a session, of which nobody needs to be the owner.
fn read(path: &Path) -> Result<Tree, CliError> {
    Ok(Tree::read(path, Limits::default())?)
}

/// The entry of that name, which the session must have.
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
