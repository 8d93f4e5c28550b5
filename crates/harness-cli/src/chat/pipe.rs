//! A chat without a terminal: each line of standard input is a message, answers go to standard output, and everything
//! else to standard error.

use std::io::{self, BufRead as _, Read as _, stdin};

use harness::core::OpId;
use harness::core::event::{EventKind, Seen};
use harness::core::message::UserMessage;
use harness::runtime::{Report, RuntimeError, Stream, StreamItem, ThreadEvent};

use super::attach;
use super::command::{self, Command, Said};
use super::conversation::Conversation;
use crate::env;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{AnswerOn, Human, Render};
use crate::signal::Signals;
use crate::terminal::{self, Out};

/// Maximum size of a message in bytes.
const LONGEST: u64 = 1 << 20;

/// Sends the messages of standard input and exits with the code of the last answer.
pub(super) async fn talk(
    chat: &mut Conversation,
    whole: bool,
    signals: &mut Signals,
) -> Result<Exit, CliError> {
    let mut exit = Exit::Completed;
    loop {
        let line = tokio::select! {
            line = next(whole) => line?,
            () = signals.next() => return Ok(Exit::Cancelled),
        };
        let Some(line) = line else { return Ok(exit) };
        let message = match command::read(&line) {
            Said::Text(text) if text.is_empty() => continue,
            Said::Text(text) => said(&text),
            Said::Run(_) => said(&line),
            _ if whole => said(&line),
            Said::Command(Command::Quit) => return Ok(exit),
            Said::Command(Command::New) => {
                chat.begin_new()?;
                continue;
            }
            Said::Command(Command::Model(Some(name))) => {
                chat.set_model(&name)?;
                continue;
            }
            Said::Unknown(text) => chat.expand(&text).ok_or(CliError::NoSuchCommand { line })?,
            Said::Command(_) | Said::Misused(_) => return Err(CliError::NoSuchCommand { line }),
        };
        exit = say(chat, message, signals).await?;
        if matches!(exit, Exit::OutputClosed | Exit::Cancelled) {
            return Ok(exit);
        }
    }
}

/// A message with the images and files that it names.
fn said(text: &str) -> UserMessage {
    let (message, problems) = attach::message(text, env::home().as_deref());
    for problem in problems {
        note(&problem);
    }
    message.from_origin("prompt")
}

/// Sends one message and shows its answer.
async fn say(chat: &Conversation, message: UserMessage, signals: &mut Signals) -> Result<Exit, CliError> {
    let on = AnswerOn::stdout();
    let on = if chat.has_output_schema() { on.accepted() } else { on };
    let human = Human::new(on.out(), terminal::messages(), on);
    let mut human = Shown { human, steps: 0 };
    let mut events = chat.events();
    let mut run = std::pin::pin!(chat.thread.prompt(message));
    let mut stopped = false;
    let report = loop {
        tokio::select! {
            biased;
            told = events.next() => {
                if let Some(Err(fault)) = told.and_then(|told| show(&mut human, told)) {
                    chat.thread.abort("standard output was closed");
                    return closed(fault);
                }
            }
            report = &mut run => break report,
            () = signals.next() => {
                if std::mem::replace(&mut stopped, true) {
                    return Ok(Exit::Cancelled);
                }
                note("stopping; press Ctrl-C again to exit immediately");
                chat.thread.abort("the user interrupted");
            }
        }
    };
    finish(&mut human, &mut events, report)
}

/// Shown part of an answer, and the number of model calls for it.
struct Shown {
    human: Human<Out, Out>,
    steps: u64,
}

fn finish(
    shown: &mut Shown,
    events: &mut Stream,
    report: Result<Report, RuntimeError>,
) -> Result<Exit, CliError> {
    let report = report.map_err(CliError::Runtime)?;
    while let Some(told) = events.try_next() {
        if let Some(Err(fault)) = show(shown, told) {
            return closed(fault);
        }
    }
    match shown.human.end(&report.end) {
        Ok(()) => {
            if let Some(failed) = &report.record_failed {
                note(&format!("run record not written: {failed}"));
            }
            let exit = Exit::of(report.end.outcome(), report.end.reason());
            let unwritten = report.end.persist_failed.is_some() || report.record_failed.is_some();
            Ok(if unwritten { exit.unwritten() } else { exit })
        }
        Err(fault) => closed(fault),
    }
}

fn closed(fault: io::Error) -> Result<Exit, CliError> {
    output::ended(Err(fault), Exit::Completed)
}

fn show(shown: &mut Shown, told: StreamItem) -> Option<io::Result<()>> {
    let Shown { human, steps } = shown;
    match told {
        StreamItem::Event { event: ThreadEvent::Event(event), .. } => {
            *steps += u64::from(matches!(event.kind, EventKind::ModelStepStarted { .. }));
            Some(human.see(&Seen::Event(event)))
        }
        StreamItem::Event { event: ThreadEvent::Delta(part), .. } => Some(human.part(OpId(*steps), &part)),
        StreamItem::Lagged { missed } => Some(human.see(&Seen::Lagged { missed })),
        StreamItem::Event { .. } | StreamItem::Held { .. } | _ => None,
    }
}

fn note(text: &str) {
    use std::io::Write as _;
    // Whoever closed standard error does not want to know.
    let _ = writeln!(terminal::messages(), "{text}");
}

/// Reads the next line of standard input, or all of it; `None` at its end. A separate thread reads, so that Ctrl-C
/// works meanwhile, and only on demand, so that an approval can be read in between.
async fn next(whole: bool) -> Result<Option<String>, CliError> {
    let (sender, line) = tokio::sync::oneshot::channel();
    let reader = std::thread::Builder::new().name("input".to_owned());
    reader
        .spawn(move || sender.send(if whole { all() } else { line_of(stdin().lock()) }))
        .map_err(|source| CliError::Io { action: "read standard input", source })?;
    line.await.unwrap_or(Ok(None))
}

fn all() -> Result<Option<String>, CliError> {
    let mut bytes = Vec::new();
    stdin()
        .lock()
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| CliError::Io { action: "read standard input", source })?;
    text(bytes)
}

fn line_of(input: impl io::BufRead) -> Result<Option<String>, CliError> {
    let mut bytes = Vec::new();
    let read = input.take(LONGEST + 1).read_until(b'\n', &mut bytes);
    read.map_err(|source| CliError::Io { action: "read standard input", source })?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<Option<String>, CliError> {
    let wrong = |problem: String| CliError::Message { problem };
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(format!("larger than {LONGEST} bytes")));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|fault| wrong(format!("invalid UTF-8 at byte {}", fault.utf8_error().valid_up_to())))
}
