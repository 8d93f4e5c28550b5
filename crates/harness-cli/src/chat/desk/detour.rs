//! Actions beside the conversation: commands, the editor, and suspending the chat.

use std::fmt::Write as _;
use std::sync::Arc;

use harness::core::Cancel;
use harness::core::Millis;
use harness::core::message::Message;
use harness::host::{ProcessFault, ProcessOptions, ProcessOutput, Shell as _};
use harness::tools::SystemPrograms;

use super::{Desk, Done, clipboard};
use crate::chat::composer::{Code, Key};
use crate::chat::{attach, draft, terminal};
use crate::env;
use crate::error::CliError;
use crate::pager::{self, Place};
use crate::private_file::PrivateFile;
use crate::render::counted;
use crate::secrets;
use crate::signal::Signals;

/// Maximum size in bytes of the kept output of a command, for each of its two streams.
const KEPT: usize = 16 << 10;

/// Time limit of a command.
const LIMIT: Millis = Millis(30 * 60 * 1_000);

/// Maximum size in bytes of a copied answer. Terminals accept 100,000 bytes in a sequence, in Base64.
const MOST_COPIED: usize = 74_000;

/// Maximum number of commands whose output waits for the next message; the oldest is dropped.
const MOST_WAITING: usize = 10;

impl Desk {
    /// Runs a command line of the user, with the user's rights, and keeps its output for the next message.
    pub(super) fn run_command(&mut self, line: String) {
        if self.command.is_some() {
            return self.app.complain("another command is running; Esc stops it");
        }
        let cancel = Cancel::new();
        self.command = Some(cancel.clone());
        self.app.set_command(Some(&line));
        let done = self.done.0.clone();
        tokio::spawn(async move {
            let result = run(&line, &cancel).await;
            // Without a desk nobody reads it.
            let _ = done.send(Done::Ran { line, result }).await;
        });
    }

    /// Stops the user's command. Returns whether one was running.
    pub(super) fn stop_command(&self) -> bool {
        self.command.as_ref().map(Cancel::cancel).is_some()
    }

    /// Shows the output of a command and keeps it for the next message.
    pub(super) fn command_ended(&mut self, line: &str, result: &str) {
        self.command = None;
        self.app.set_command(None);
        self.app.show_command(line, result);
        if self.outputs.len() >= MOST_WAITING {
            self.outputs.remove(0);
        }
        self.outputs.push(attach::command(line, result));
    }

    /// Reads the image on the clipboard.
    pub(super) fn paste_image(&self) {
        let (done, number) = (self.done.0.clone(), self.chat.now().0);
        tokio::spawn(async move {
            let read = clipboard::image(number).await;
            // Without a desk nobody reads it.
            let _ = done.send(read.map_or_else(Done::Failed, Done::Image)).await;
        });
    }

    /// Names an image of the clipboard in the message.
    pub(super) fn attach_image(&mut self, file: PrivateFile) {
        let name = format!("@{} ", file.path().display());
        self.images.push(file);
        self.app.key(Key::of(Code::Paste(name)));
    }

    /// Opens the text of the composer in the user's editor.
    pub(super) async fn edit_draft(&mut self, signals: &mut Signals) -> Result<(), CliError> {
        self.release()?;
        let edited = draft::edit(self.app.draft(), self.chat.now().0).await;
        // Ctrl-C was for the editor.
        signals.discard_interrupts();
        self.take_back()?;
        match edited {
            Ok(Some(text)) => self.app.set_draft(&text),
            Ok(None) => self.app.tell("the editor failed; the draft is unchanged"),
            Err(problem) => self.app.complain(&problem),
        }
        Ok(())
    }

    /// Copies the last answer to the clipboard.
    pub(super) async fn copy_answer(&mut self) -> Result<(), CliError> {
        let messages = self.chat.thread.messages().await?;
        let messages: Vec<_> = messages.iter().cloned().collect();
        let text = |message: &Arc<Message>| match &**message {
            Message::Assistant(answer) => Some(answer.joined_text()).filter(|text| !text.trim().is_empty()),
            Message::System(_) | Message::User(_) | Message::ToolResult(_) | Message::Custom(_) | _ => None,
        };
        let Some(answer) = messages.iter().rev().find_map(text) else {
            self.app.tell("no answer yet");
            return Ok(());
        };
        if answer.len() > MOST_COPIED {
            let size = answer.len();
            let text = format!(
                "the answer has {size} bytes, and at most {MOST_COPIED} can be copied; /save exports it"
            );
            self.app.complain(&text);
            return Ok(());
        }
        let copied = self.screen.copy(&answer);
        copied.map_err(|source| CliError::Io { action: "write to the terminal", source })?;
        let size = counted(answer.chars().count(), "character");
        self.app.tell(&format!("copied {size} to the clipboard, if your terminal allows it"));
        Ok(())
    }

    /// Shows the whole conversation in the user's pager.
    pub(super) async fn page_transcript(&mut self, signals: &mut Signals) -> Result<(), CliError> {
        let messages = self.chat.thread.messages().await?;
        let messages: Vec<_> = messages.iter().cloned().collect();
        let text = self.app.transcript(&messages);
        if text.is_empty() {
            self.app.tell("no messages yet");
            return Ok(());
        }
        self.release()?;
        let shown = pager::show(&text, Place::Screen).await;
        // Ctrl-C was for the pager.
        signals.discard_interrupts();
        self.take_back()?;
        if let Err(problem) = shown {
            self.app.complain(&problem);
        }
        Ok(())
    }

    /// Stops this process until the user's shell continues it.
    pub(super) fn suspend(&mut self) -> Result<(), CliError> {
        self.release()?;
        // The shell writes below.
        self.app.settle();
        self.screen.settle();
        let stopped = signal_hook::low_level::raise(signal_hook::consts::SIGTSTP);
        self.take_back()?;
        if let Err(fault) = stopped {
            self.app.complain(&format!("cannot suspend the chat: {fault}"));
        }
        Ok(())
    }

    /// Leaves the terminal to another program.
    fn release(&mut self) -> Result<(), CliError> {
        self.keys.pause();
        let cleared = self.screen.clear(self.size.0);
        terminal::restore();
        cleared.map_err(|source| CliError::Io { action: "write to the terminal", source })
    }

    /// Restores the terminal; the next draw shows everything.
    fn take_back(&mut self) -> Result<(), CliError> {
        let taken = terminal::take_back();
        self.keys.resume();
        taken.map_err(|source| CliError::Io { action: "use the terminal", source })
    }
}

/// Programs with the rights and the environment of the user, in the current directory.
pub(super) fn programs() -> SystemPrograms {
    env::surroundings()
        .iter()
        .fold(SystemPrograms::new("."), |programs, (name, value)| programs.env(name, value))
}

/// Runs a command line in the current directory; its exit code and output.
async fn run(line: &str, cancel: &Cancel) -> String {
    let options = ProcessOptions::new().timeout(LIMIT).max_output(KEPT);
    let text = match programs().exec(line, &options, cancel).await {
        Ok(output) => described(&output, None),
        Err(fault) => match fault.output() {
            Some(output) => described(output, Some(&fault)),
            None => fault.to_string(),
        },
    };
    secrets::redactor().text(&text).into_owned()
}

fn described(output: &ProcessOutput, fault: Option<&ProcessFault>) -> String {
    let mut text = String::new();
    for stream in [&output.stdout, &output.stderr] {
        text.push_str(stream.trim_end());
        if !stream.trim_end().is_empty() {
            text.push('\n');
        }
    }
    match (fault, output.exit_code) {
        (Some(fault), _) => text.push_str(&fault.to_string()),
        (None, Some(0)) => {}
        (None, Some(code)) => drop(write!(text, "exit code {code}")),
        (None, None) => text.push_str("killed by a signal"),
    }
    let text = text.trim_end();
    if text.is_empty() { "(no output)".to_owned() } else { text.to_owned() }
}
