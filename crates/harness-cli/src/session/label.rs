//! `harness session label`.

use harness::core::EntryId;
use harness::core::port::{Clock as _, EntryHead};
use harness::session::{FileSession, Note};
use harness::system::SystemClock;
use serde_json::json;

use super::options;
use crate::args::LabelArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Sets or removes the label of an entry.
pub(super) fn label(args: &LabelArgs) -> Result<Exit, CliError> {
    let session = FileSession::open(&args.session, options().create(false))?;
    let head = EntryHead::new(SystemClock::new().now(), None, 0, None);
    let target = EntryId::from(&*args.entry);
    let note = match &args.label {
        Some(label) => Note::label(target, label),
        None => Note::no_label(target),
    };
    let id = session.note(&head, &note)?;
    if args.json {
        let told = json!({"entry": args.entry, "label": args.label, "id": id.as_str()});
        return output::print_value(told, Exit::Completed);
    }
    let told = match &args.label {
        Some(label) => format!("{} named `{label}`\n", args.entry),
        None => format!("{} has no name\n", args.entry),
    };
    output::print(&told, Exit::Completed)
}
