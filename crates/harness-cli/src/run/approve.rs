//! Approval of tool calls.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _, stdin};
use std::sync::Arc;
use std::time::Duration;

use harness::core::port::{ApprovalAsk, Approver, Decision, ProposedCall};
use tokio::sync::{Mutex, oneshot};

use super::decisions::Decisions;
use super::question::{self, Question, Reply};
use crate::args::Approve;
use crate::render::RenderControl;
use crate::terminal::{self, Stream};

/// Time during which a new prompt ignores input, because a user who is typing has not read it.
const QUIET: Duration = Duration::from_millis(300);

/// Approver of `--approve`.
#[derive(Clone, Debug)]
pub(crate) struct CommandLineApprover {
    approve: Approve,
    rendering: RenderControl,
    keyboard: Arc<Mutex<Keyboard>>,
    decisions: Arc<parking_lot::Mutex<Decisions>>,
    pending: Arc<parking_lot::Mutex<Vec<ProposedCall>>>,
}

/// Maximum number of tracked pending calls.
const MOST_PENDING: usize = 1_000;

impl CommandLineApprover {
    pub(crate) fn new(approve: Approve) -> Self {
        Self {
            approve,
            rendering: RenderControl::default(),
            keyboard: Arc::default(),
            decisions: Arc::default(),
            pending: Arc::default(),
        }
    }

    /// Adds a renderer, which pauses while a prompt is open.
    #[must_use]
    pub(crate) fn beside(self, rendering: RenderControl) -> Self {
        Self { rendering, ..self }
    }

    /// Adds decisions of the command line.
    #[must_use]
    pub(super) fn with_decisions(self, decisions: Decisions) -> Self {
        Self { decisions: Arc::new(parking_lot::Mutex::new(decisions)), ..self }
    }

    /// Calls that stayed pending.
    pub(super) fn pending(&self) -> Vec<ProposedCall> {
        self.pending.lock().clone()
    }

    /// Decides on a call.
    async fn decided(&self, ask: &ApprovalAsk) -> Decision {
        let named = self.decisions.lock().take(&ask.proposed);
        if let Some(decision) = named {
            return decision;
        }
        match self.approve {
            Approve::Always => Decision::Granted,
            Approve::Never => {
                Decision::Denied { reason: "the user denies all calls that need approval".to_owned() }
            }
            // Without a terminal there is nobody who could read the question, or answer it.
            Approve::Ask if stdin().is_terminal() && Stream::Err.is_terminal() => self.at_terminal(ask).await,
            Approve::Ask => Decision::Later,
        }
    }

    /// Prompts on the terminal, for one call at a time.
    async fn at_terminal(&self, ask: &ApprovalAsk) -> Decision {
        let asked = async {
            let mut keyboard = self.keyboard.lock().await;
            let _paused = self.rendering.pause().await;
            keyboard.ask(ask).await.unwrap_or(Decision::Later)
        };
        tokio::select! {
            () = ask.cancel.cancelled() => Decision::Later,
            decision = asked => decision,
        }
    }
}

impl Approver for CommandLineApprover {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        let decision = self.decided(&ask).await;
        if decision == Decision::Later {
            let mut pending = self.pending.lock();
            if pending.len() < MOST_PENDING {
                pending.push(ask.proposed);
            }
        }
        decision
    }
}

/// Typed lines.
#[derive(Debug, Default)]
struct Keyboard {
    /// A line of a prompt that was cancelled. It does not answer the next prompt.
    stale: Option<oneshot::Receiver<io::Result<String>>>,
}

impl Keyboard {
    /// Prompts for a call until there is a decision.
    async fn ask(&mut self, ask: &ApprovalAsk) -> io::Result<Decision> {
        let mut question = Question::new(&ask.proposed, terminal::question_size());
        show(&question.next_page())?;
        loop {
            let line = self.line(question.prompt()).await?;
            match question.reply(&line) {
                Reply::Decided(decision) => return Ok(decision),
                Reply::View => show(&question.next_page())?,
                Reply::Explain => return Ok(question::denied(&self.line("  why? ").await?)),
                Reply::Again(why) => show(&format!("  {why}\n"))?,
            }
        }
    }

    /// Reads the line typed after the prompt became readable. Earlier input, and input in the moment of its appearance,
    /// is ignored.
    async fn line(&mut self, prompt: &str) -> io::Result<String> {
        tokio::time::sleep(QUIET).await;
        terminal::discard_input();
        let waits = match self.stale.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Err(oneshot::error::TryRecvError::Empty)) => true,
            Some(Ok(_) | Err(oneshot::error::TryRecvError::Closed)) | None => false,
        };
        let line = match self.stale.take().filter(|_| waits) {
            Some(line) => line,
            None => typed()?,
        };
        show(prompt)?;
        // It stays here when the question is cancelled.
        let line = self.stale.insert(line).await;
        self.stale = None;
        match line {
            Ok(Ok(line)) if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(line) => line,
            Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn show(text: &str) -> io::Result<()> {
    let mut out = terminal::questions();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Reads a line on a separate thread, so that Ctrl-C works meanwhile.
fn typed() -> io::Result<oneshot::Receiver<io::Result<String>>> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new().name("approval".to_owned()).spawn(move || {
        let mut line = String::new();
        let read = stdin().lock().read_line(&mut line);
        let _ = answer.send(read.map(|_| line));
    })?;
    Ok(answered)
}
