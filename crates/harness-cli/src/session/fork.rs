//! `harness session fork`.

use harness::core::port::Clock as _;
use harness::session::ForkOptions;
use harness::system::SystemClock;
use serde_json::json;

use super::{entry, leaf, options, read, stem};
use crate::args::ForkArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Copies one branch into a separate session.
pub(super) fn fork(args: &ForkArgs) -> Result<Exit, CliError> {
    let tree = read(&args.session)?;
    let id = entry(&tree, &args.session, args.at.as_deref())?;
    let now = SystemClock::new().now();
    let name = format!("{}-{:x}", stem(&args.target), now.0);
    let fork = tree.fork(leaf(id.as_ref()), ForkOptions::new(&*name, now))?;
    fork.save(&args.target, &options())?;
    let entries = fork.nodes().len();
    if args.json {
        let told = json!({"session": args.target, "id": name, "entries": entries});
        return output::print_value(told, Exit::Completed);
    }
    output::print(&format!("{}: {entries} entries\n", args.target.display()), Exit::Completed)
}
