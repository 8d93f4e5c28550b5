//! Control of a renderer: notices and prompts must not appear inside its lines.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Render;
use crate::terminal;

/// Maximum time a notice or a prompt waits for a blocked renderer, whose reader does not read.
const PATIENCE: Duration = Duration::from_millis(300);

/// Maximum number of pending commands.
const WAITING: usize = 8;

/// Command to a renderer between two outputs.
#[derive(Debug)]
pub(crate) enum RenderCommand {
    /// Show this line and confirm it.
    Notice { text: String, shown: oneshot::Sender<()> },
    /// Pause: show nothing from the confirmation on `paused` until `resume` is sent or dropped.
    Pause { paused: oneshot::Sender<()>, resume: oneshot::Receiver<()> },
}

/// Pending commands of a renderer.
#[derive(Debug)]
pub(crate) struct RenderCommands(mpsc::Receiver<RenderCommand>);

impl RenderCommands {
    /// Waits for the next command. Never completes when no more can arrive. Cancel safe.
    pub(crate) async fn next(&mut self) -> RenderCommand {
        match self.0.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

/// Sender of commands. The default has no renderer and writes to the terminal immediately.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderControl(Option<mpsc::Sender<RenderCommand>>);

impl RenderControl {
    /// Creates a control and its commands.
    pub(crate) fn new() -> (Self, RenderCommands) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(Some(sender)), RenderCommands(receiver))
    }

    /// Shows a line on standard error, between two lines of the renderer.
    pub(crate) async fn notice(&self, text: &str) {
        let (shown, done) = oneshot::channel();
        if !self.send(RenderCommand::Notice { text: text.to_owned(), shown }, done).await {
            let _ = writeln!(terminal::messages(), "\n{text}");
        }
    }

    /// Pauses the renderer until the result is dropped.
    pub(crate) async fn pause(&self) -> oneshot::Sender<()> {
        let ((paused, done), (resume, resumed)) = (oneshot::channel(), oneshot::channel());
        self.send(RenderCommand::Pause { paused, resume: resumed }, done).await;
        resume
    }

    /// Sends a command and waits for its execution. Returns whether it was executed or never will be.
    async fn send(&self, command: RenderCommand, done: oneshot::Receiver<()>) -> bool {
        let Some(sender) = &self.0 else { return false };
        let obeyed = async { sender.send(command).await.is_ok() && done.await.is_ok() };
        tokio::time::timeout(PATIENCE, obeyed).await.unwrap_or(false)
    }
}

/// Executes a command.
pub(super) async fn obey(
    command: RenderCommand,
    commands: &mut RenderCommands,
    renderer: &mut dyn Render,
) -> io::Result<()> {
    let mut resume = match command {
        RenderCommand::Notice { text, shown } => return notice(&text, shown, renderer),
        RenderCommand::Pause { paused, resume } => {
            renderer.pause()?;
            let _ = paused.send(());
            resume
        }
    };
    loop {
        tokio::select! {
            biased;
            _ = &mut resume => return Ok(()),
            command = commands.next() => match command {
                RenderCommand::Notice { text, shown } => notice(&format!("\n{text}"), shown, renderer)?,
                // Paused already; the newer one decides when that ends.
                RenderCommand::Pause { paused, resume: newer } => {
                    let _ = paused.send(());
                    resume = newer;
                }
            },
        }
    }
}

fn notice(text: &str, shown: oneshot::Sender<()>, renderer: &mut dyn Render) -> io::Result<()> {
    // When nobody waits any more, the notice was shown without the renderer.
    if !shown.is_closed() {
        renderer.pause()?;
        let _ = writeln!(terminal::messages(), "{text}");
        let _ = shown.send(());
    }
    Ok(())
}
