//! `harness session list`.

use std::fmt::Write as _;
use std::path::PathBuf;

use harness::core::message::Message;
use harness::session::{Body, Error, Leaf, Location, Tree};
use serde::Serialize;

use super::options;
use crate::args::ListArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, BOLD, DIM, counted, one_line};

/// Prints the sessions of a directory.
pub(super) fn list(args: &ListArgs) -> Result<Exit, CliError> {
    let found = Location::of(&args.folder).sessions()?;
    let rows: Vec<Row> = found.into_iter().map(Row::of).collect();
    if args.json {
        return output::print_json(&rows, Exit::Completed);
    }
    if rows.is_empty() {
        return output::print("no sessions found\n", Exit::Completed);
    }
    output::print_long(&rows.iter().map(Row::text).collect::<String>(), Exit::Completed)
}

/// One session, or what is wrong with it.
#[derive(Serialize)]
struct Row {
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<About>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

#[derive(Serialize)]
struct About {
    id: Option<String>,
    name: Option<String>,
    source: String,
    entries: usize,
    messages: usize,
    branches: usize,
    last_at: Option<String>,
    first_message: Option<String>,
    torn_tail: bool,
}

#[derive(Serialize)]
struct Problem {
    kind: &'static str,
    message: String,
    hint: &'static str,
}

impl Row {
    fn of(file: PathBuf) -> Self {
        match Tree::read(&file, &options()) {
            Ok(tree) => Self { file, session: Some(About::of(&tree)), error: None },
            Err(error) => Self { file, session: None, error: Some(Problem::of(&error)) },
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}", one_line(&name));
        if let Some(error) = &self.error {
            let _ = writeln!(text, "  {BAD}{}{BAD:#}: {}", error.kind, one_line(&error.message));
        }
        let Some(about) = &self.session else { return text };
        let title = about.name.as_ref().or(about.first_message.as_ref());
        if let Some(title) = title {
            let _ = writeln!(text, "  {}", one_line(title));
        }
        let mut parts = vec![counted(about.messages, "message")];
        if about.branches > 1 {
            parts.push(format!("{} branches", about.branches));
        }
        parts.extend(about.last_at.clone());
        if about.source != "harness" {
            parts.push(format!("from {}", about.source));
        }
        parts.extend(about.torn_tail.then(|| "last line incomplete".to_owned()));
        let _ = writeln!(text, "  {DIM}{}{DIM:#}", one_line(&parts.join(" · ")));
        text
    }
}

impl About {
    fn of(tree: &Tree) -> Self {
        let loaded = tree.loaded(Leaf::Last);
        let first = loaded.messages.iter().find(|message| matches!(***message, Message::User(_)));
        let last = tree.nodes().iter().rev().find(|node| matches!(node.body, Body::Message(_)));
        Self {
            id: tree.header().map(|header| header.id.to_string()),
            name: tree.name().map(str::to_owned),
            source: tree.source().to_string(),
            entries: tree.nodes().len(),
            messages: loaded.messages.len(),
            branches: tree.leaves().count(),
            last_at: last.map(|node| node.at.clone()).filter(|at| !at.is_empty()),
            first_message: first.map(|message| one_line(&message.joined_text())),
            torn_tail: tree.torn_tail().is_some(),
        }
    }
}

impl Problem {
    fn of(error: &Error) -> Self {
        Self { kind: error.kind(), message: error.to_string(), hint: error.hint() }
    }
}
