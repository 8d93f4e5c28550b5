//! What a person or a program sees of a run.

mod answer;
mod control;
mod cost;
mod event_line;
mod harmless;
mod human;
mod json;
pub(crate) mod limit;
pub(crate) mod line;
pub(crate) mod markdown;
mod proposed;
pub(crate) mod screen;
mod status;
mod style;

use std::io;
use std::thread::JoinHandle;

use harness::core::event::{Seen, Subscription};
use harness::core::{Cancel, End};

pub(crate) use answer::{AnswerOn, size};
pub(crate) use control::{RenderCommands, RenderControl};
pub(crate) use cost::CostNotice;
pub(crate) use event_line::{decided, repaired, shortened, stalled};
pub(crate) use harmless::{counted, harmless, one_line};
pub(crate) use human::{Human, why};
pub(crate) use json::JsonLines;
pub(crate) use proposed::{call_rows, not_shown, visible};
pub(crate) use status::Status;
pub(crate) use style::{BAD, BOLD, DIM, GOOD, NOTE};

/// Shows what is seen of a run, then its end.
pub(crate) trait Render: Send {
    /// Shows one thing.
    fn see(&mut self, seen: &Seen) -> io::Result<()>;

    /// Ends the line at hand, so that others may write to the terminal until the next thing is shown.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Shows how it ended.
    fn end(&mut self, end: &End) -> io::Result<()>;
}

/// A renderer at work in a thread of its own, so that a reader who is slow to take the output never
/// holds up the run or Ctrl-C.
pub(crate) struct Rendering(JoinHandle<io::Result<Box<dyn Render>>>);

impl Rendering {
    /// Starts to show a subscription, and to obey `commands` between two things. When the output cannot be written
    /// any more, `stop` is fired.
    pub(crate) fn start(
        subscription: Subscription,
        commands: RenderCommands,
        mut renderer: Box<dyn Render>,
        stop: Cancel,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let work = move || {
            let shown = runtime.block_on(show(subscription, commands, &mut *renderer));
            if shown.is_err() {
                stop.cancel();
            }
            shown.map(|()| renderer)
        };
        std::thread::Builder::new().name("output".to_owned()).spawn(work).map(Self)
    }

    /// Waits until everything was shown, then shows the end.
    pub(crate) fn finish(self, end: &End) -> io::Result<()> {
        let mut renderer = self.0.join().map_err(|_| io::Error::other("the renderer panicked"))??;
        renderer.end(end)
    }
}

/// Shows everything; what is there to be seen goes before a command.
async fn show(
    mut subscription: Subscription,
    mut commands: RenderCommands,
    renderer: &mut dyn Render,
) -> io::Result<()> {
    loop {
        tokio::select! {
            biased;
            seen = subscription.next() => match seen {
                Some(seen) => renderer.see(&seen)?,
                None => return Ok(()),
            },
            command = commands.next() => control::obey(command, &mut commands, renderer).await?,
        }
    }
}
