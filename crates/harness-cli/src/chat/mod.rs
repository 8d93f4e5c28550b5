//! `harness chat`: a conversation at a terminal.
//!
//! [`app`] is the chat as a state machine without a terminal, over the [`composer`] and the terminal parts of
//! [`render`](crate::render); [`terminal`] reads keys, [`conversation`] owns the threads, [`desk`] connects them;
//! [`pipe`] works without a terminal.

mod app;
mod approver;
mod assistant;
mod attach;
mod command;
mod composer;
mod conversation;
mod desk;
mod draft;
mod files;
mod grants;
mod history;
mod images;
mod pick;
mod pipe;
mod place;
mod store;
mod terminal;
mod words;

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdin};
use std::path::{Path, PathBuf};

use harness::SessionStore;
use harness::core::port::Clock as _;
use harness::session::Location;
use harness::system::SystemClock;

use conversation::{Conversation, folder};
use desk::Desk;
use pick::{Pick, Picked};
use terminal::{Input, Keys, Terminal};

use crate::args::{ChatArgs, Color, ModelArgs};
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;
use crate::model;
use crate::output;
use crate::outputs;
use crate::render::line::Styling;
use crate::render::screen::Screen;
use crate::render::size;
use crate::run::block_on;
use crate::session::options;
use crate::signal::Signals;
use crate::terminal::{Stream, drawing};

/// Maximum number of conversations whose messages `--resume` searches; it searches all titles.
const SEARCHED: usize = 200;

/// Chats with agents, or with a model.
pub(crate) fn chat(args: &ChatArgs) -> Result<Exit, CliError> {
    let (args, notice) = settled(ChatArgs { descriptor: descriptor(args)?, ..args.clone() })?;
    let args = &args;
    match args.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    block_on(async {
        if stdin().is_terminal() && Stream::Out.is_terminal() {
            at_terminal(args, notice).await
        } else {
            over_pipe(args, notice).await
        }
    })
}

/// The arguments with the usual model if nothing names what answers, and the line about the demo model if it is the one.
fn settled(mut args: ChatArgs) -> Result<(ChatArgs, Option<String>), CliError> {
    let ModelArgs { model, base_url, replay, .. } = &args.threads.agents.model;
    let named = args.descriptor.is_some() || model.is_some() || base_url.is_some() || replay.is_some();
    if !named && args.threads.agents.backend.backend.is_none() {
        let (name, notice) = model::usual(&args.threads.agents.model)?;
        args.threads.agents.model.model = Some(name);
        return Ok((args, notice));
    }
    Ok((args, None))
}

/// The descriptor of the arguments, or the default one if it exists.
fn descriptor(args: &ChatArgs) -> Result<Option<PathBuf>, CliError> {
    args.descriptor.as_deref().map_or_else(descriptor::search, |named| descriptor::at(named).map(Some))
}

async fn over_pipe(args: &ChatArgs, notice: Option<String>) -> Result<Exit, CliError> {
    let mut signals = listen()?;
    if args.resume {
        return Err(CliError::NoTerminal);
    }
    let file = file(args)?;
    let (mut chat, begun) = Conversation::open(args, file.as_deref(), false).await?;
    model::announce(notice.or(begun.notice).as_deref());
    let exit = pipe::talk(&mut chat, args.whole, &mut signals).await;
    chat.close().await;
    exit
}

async fn at_terminal(args: &ChatArgs, notice: Option<String>) -> Result<Exit, CliError> {
    let mut signals = listen()?;
    let taken = |source| CliError::Io { action: "use the terminal", source };
    let styling = if Stream::Out.has_styles() { Styling::Colour } else { Styling::Plain };
    // What is wrong with the arguments is told on a terminal as it was.
    let picked = if args.resume { Some(stored(args)?) } else { None };
    let mut file = file(args)?;
    let mut inputs = None;
    if let Some(threads) = picked {
        let _terminal = Terminal::take().map_err(taken)?;
        let mut keys = Keys::start().map_err(taken)?;
        let rows = threads.iter().map(|(row, _)| row.clone()).collect();
        let texts = threads.iter().take(SEARCHED).map(|(_, path)| store::searched(path)).collect();
        let list = Pick::new("Which conversation?", rows).searching(texts);
        let chosen = tokio::select! {
            chosen = pick(list, styling, &mut keys) => chosen?,
            () = signals.next() => return Ok(Exit::Cancelled),
        };
        let Some(number) = chosen else { return Ok(Exit::Completed) };
        file = threads.get(number).map(|(_, path)| path.clone());
        inputs = Some(keys);
    }
    let (chat, mut begun) = Conversation::open(args, file.as_deref(), true).await?;
    begun.notice = notice.or(begun.notice).or_else(|| model::demo_notice(&begun.model));
    let terminal = Terminal::take().map_err(taken)?;
    let keys = match inputs {
        Some(keys) => keys,
        None => Keys::start().map_err(taken)?,
    };
    let mut desk = Desk::new(chat, &begun, styling, keys);
    let talked = desk.talk(&mut signals).await;
    drop(terminal);
    let exit = if talked? { Exit::Completed } else { Exit::Cancelled };
    if let Some(file) = desk.file() {
        return output::print(&format!("continue with: {}\n", go_on(args, &file)), exit);
    }
    Ok(exit)
}

fn listen() -> Result<Signals, CliError> {
    Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })
}

/// Session file of the conversation; `None` if it is not stored.
fn file(args: &ChatArgs) -> Result<Option<PathBuf>, CliError> {
    if let Some(file) = &args.session {
        outputs::check_session(file)?;
        let whole = matches!(Location::of(file), Location::Database(_));
        let new = || store::new_beside(file, SystemClock::new().now());
        return Ok(Some(if whole { new() } else { file.clone() }));
    }
    let Some(folder) = folder(args) else {
        return if args.continue_last { Err(CliError::NoConversation { folder: None }) } else { Ok(None) };
    };
    if !args.continue_last {
        return Ok(Some(store::new_file(&folder, SystemClock::new().now())));
    }
    let last = store::files(&folder).into_iter().next();
    last.map(Some).ok_or(CliError::NoConversation { folder: Some(folder) })
}

/// Existing conversations: descriptions and files.
fn stored(args: &ChatArgs) -> Result<Vec<(String, PathBuf)>, CliError> {
    let none = |folder| Err(CliError::NoConversation { folder });
    let Some(folder) = folder(args) else { return none(None) };
    let listed = SessionStore::new(&folder)
        .options(options())
        .list()
        .map_err(|fault| CliError::Runtime(fault.into()))?;
    let mut rows = Vec::new();
    for thread in listed {
        let title = thread.title.or(thread.problem).unwrap_or_else(|| "no messages".to_owned());
        let when = thread.last_at.unwrap_or_default();
        let when = when.get(..16).unwrap_or_default().replace('T', " ");
        rows.push((format!("{when}  {title} ({} messages)", thread.messages), thread.path));
    }
    if rows.is_empty() { none(Some(folder)) } else { Ok(rows) }
}

/// Lets the user choose; `None` if the selection is cancelled.
async fn pick(mut pick: Pick, styling: Styling, keys: &mut Keys) -> Result<Option<usize>, CliError> {
    let written = |source| CliError::Io { action: "write to the terminal", source };
    let mut screen = Screen::new(drawing(), styling);
    let (mut columns, mut rows) = size();
    let picked = loop {
        screen.draw(&[], &pick.view(columns, rows), columns).map_err(written)?;
        match keys.next().await {
            Input::Key(key) => {
                if let Some(picked) = pick.key(&key) {
                    break picked;
                }
            }
            Input::Size(wide, high) => (columns, rows) = (wide, high),
            Input::Closed => break Picked::None,
        }
    };
    screen.clear(columns).map_err(written)?;
    Ok(match picked {
        Picked::One(number) => Some(number),
        Picked::None => None,
    })
}

/// Command that resumes a conversation.
fn go_on(args: &ChatArgs, file: &Path) -> String {
    let mut command = "harness chat".to_owned();
    if let Some(descriptor) = &args.descriptor {
        let _ = write!(command, " {}", descriptor.display());
    }
    if let Some(model) = &args.threads.agents.model.model {
        let _ = write!(command, " --model {model}");
    }
    let usual = folder(args).is_some_and(|folder| file.parent() == Some(&folder));
    if usual { command + " --continue" } else { format!("{command} --session {}", file.display()) }
}
