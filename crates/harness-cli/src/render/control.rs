//! What others show while a run is shown: notices and questions, which must not stand inside its lines.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Render;
use crate::terminal;

/// How long a notice or a question waits for a renderer that is stuck, as one is whose reader does not read.
const PATIENCE: Duration = Duration::from_millis(300);

/// Commands that wait, at most.
const WAITING: usize = 8;

/// What a renderer is to do between two things that it shows.
#[derive(Debug)]
pub(crate) enum RenderCommand {
    /// Show this line, and say so.
    Notice { text: String, shown: oneshot::Sender<()> },
    /// Show nothing, from when `paused` is told on until `resume` is, or is dropped.
    Pause { paused: oneshot::Sender<()>, resume: oneshot::Receiver<()> },
}

/// Commands on their way to a renderer.
#[derive(Debug)]
pub(crate) struct RenderCommands(mpsc::Receiver<RenderCommand>);

impl RenderCommands {
    /// The next command. Never completes when no more can come. Cancel safe.
    pub(crate) async fn next(&mut self) -> RenderCommand {
        match self.0.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

/// Commands a renderer. The default one has none, and writes to the terminal at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderControl(Option<mpsc::Sender<RenderCommand>>);

impl RenderControl {
    /// A control, and what its renderer obeys.
    pub(crate) fn new() -> (Self, RenderCommands) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(Some(sender)), RenderCommands(receiver))
    }

    /// Shows a line between two lines of what is shown, on standard error.
    pub(crate) async fn notice(&self, text: &str) {
        let (shown, done) = oneshot::channel();
        if !self.send(RenderCommand::Notice { text: text.to_owned(), shown }, done).await {
            let _ = writeln!(terminal::messages(), "\n{text}");
        }
    }

    /// Shows nothing until the result is dropped.
    pub(crate) async fn pause(&self) -> oneshot::Sender<()> {
        let ((paused, done), (resume, resumed)) = (oneshot::channel(), oneshot::channel());
        self.send(RenderCommand::Pause { paused, resume: resumed }, done).await;
        resume
    }

    /// Sends a command and waits until it is obeyed. Whether it was, or never will be.
    async fn send(&self, command: RenderCommand, done: oneshot::Receiver<()>) -> bool {
        let Some(sender) = &self.0 else { return false };
        let obeyed = async { sender.send(command).await.is_ok() && done.await.is_ok() };
        tokio::time::timeout(PATIENCE, obeyed).await.unwrap_or(false)
    }
}

/// Does what a command says.
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
