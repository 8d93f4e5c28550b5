//! Output of a run for users and programs.

mod answer;
mod change;
mod control;
mod cost;
mod event_line;
mod harmless;
pub(crate) mod highlight;
mod human;
mod json;
pub(crate) mod limit;
pub(crate) mod line;
pub(crate) mod markdown;
pub(crate) mod picture;
mod proposed;
pub(crate) mod screen;
mod status;
mod style;
mod waiting;

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use harness::core::event::{Seen, Subscription};
use harness::core::{Cancel, End};

pub(crate) use answer::{AnswerOn, size};
pub(crate) use change::{change_rows, part_rows};
pub(crate) use control::{RenderCommands, RenderControl};
pub(crate) use cost::CostNotice;
pub(crate) use event_line::{decided, repaired, shortened, stalled};
pub(crate) use harmless::{counted, harmless, one_line};
pub(crate) use human::{Human, why};
pub(crate) use json::{JsonLines, NothingToResume, Tagged, schema};
pub(crate) use proposed::{call_rows, not_shown, proposed_rows, visible};
pub(crate) use status::Status;
pub(crate) use style::{BAD, BOLD, DIM, GOOD, NOTE};

/// Shows a run and its end.
pub(crate) trait Render: Send {
    /// Shows one item.
    fn see(&mut self, seen: &Seen) -> io::Result<()>;

    /// Shows that nothing happened for `seconds`.
    fn wait(&mut self, _seconds: u32) -> io::Result<()> {
        Ok(())
    }

    /// Ends the current line, so that others may write to the terminal until the next item.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Shows the end.
    fn end(&mut self, end: &End) -> io::Result<()>;
}

/// A renderer on a separate thread, so that a slow reader of the output never delays the run or Ctrl-C.
pub(crate) struct Rendering(JoinHandle<io::Result<Box<dyn Render>>>);

impl Rendering {
    /// Shows a subscription and executes `commands` between two items. Fires `stop` when the output cannot be written.
    pub(crate) fn start(
        subscription: Subscription,
        commands: RenderCommands,
        mut renderer: Box<dyn Render>,
        stop: Cancel,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
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

/// Time between two reports that nothing happened.
const TICK: Duration = Duration::from_secs(1);

/// Shows everything; available items go before commands.
async fn show(
    mut subscription: Subscription,
    mut commands: RenderCommands,
    renderer: &mut dyn Render,
) -> io::Result<()> {
    let mut idle = 0_u32;
    loop {
        tokio::select! {
            biased;
            seen = subscription.next() => match seen {
                Some(seen) => {
                    idle = 0;
                    renderer.see(&seen)?;
                }
                None => return Ok(()),
            },
            command = commands.next() => control::obey(command, &mut commands, renderer).await?,
            () = tokio::time::sleep(TICK) => {
                idle = idle.saturating_add(1);
                renderer.wait(idle)?;
            }
        }
    }
}
