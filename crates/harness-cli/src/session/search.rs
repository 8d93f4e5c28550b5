//! `harness session search`.

use std::fmt::Write as _;

use harness::session::Location;
use harness::session::search::{Found, Query, search as find};
use serde_json::{Value, json};

use super::options;
use crate::args::SearchArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, BOLD, DIM, one_line};

/// Finds messages.
pub(super) fn search(args: &SearchArgs) -> Result<Exit, CliError> {
    if !Location::of(&args.place).exists()? {
        return Err(CliError::NoSession { path: args.place.clone() });
    }
    let found = find(&args.place, &Query::new(&args.text), usize::from(args.limit), &options())?;
    if args.json {
        return output::print_value(whole(&found), Exit::Completed);
    }
    output::print_long(&text(&found), Exit::Completed)
}

fn whole(found: &Found) -> Value {
    let problems: Vec<Value> = { found.problems.iter() }
        .map(|(session, error)| json!({"session": session, "kind": error.kind(), "message": error.to_string()}))
        .collect();
    json!({"hits": found.hits, "more": found.more, "problems": problems})
}

fn text(found: &Found) -> String {
    let mut text = String::new();
    for hit in &found.hits {
        let session = hit.session.display().to_string();
        let about = format!("{} · {} · {}", hit.entry, hit.role, hit.at);
        let _ = writeln!(text, "{BOLD}{}{BOLD:#} {DIM}{}{DIM:#}", one_line(&session), one_line(&about));
        let _ = writeln!(text, "  {}", one_line(&hit.snippet));
    }
    if found.hits.is_empty() {
        text += "no messages found\n";
    }
    if found.more {
        let _ = writeln!(text, "{DIM}there are more: raise --limit, or add words{DIM:#}");
    }
    for (_, error) in &found.problems {
        let _ = writeln!(text, "{BAD}{}{BAD:#}: {}", error.kind(), one_line(&error.to_string()));
    }
    text
}
