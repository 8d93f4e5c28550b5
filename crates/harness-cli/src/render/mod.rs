//! What a person or a program sees of a run.

mod answer;
mod cost;
mod harmless;
mod human;
mod json;
pub(crate) mod limit;
pub(crate) mod line;
pub(crate) mod markdown;
pub(crate) mod screen;
mod status;
mod style;
mod told;

use std::io;
use std::thread::JoinHandle;

use harness::core::event::{Seen, Subscription};
use harness::core::{Cancel, End};

pub(crate) use answer::{AnswerOn, size};
pub(crate) use cost::CostNotice;
pub(crate) use harmless::{harmless, one_line};
pub(crate) use human::{Human, why};
pub(crate) use json::JsonLines;
pub(crate) use status::Status;
pub(crate) use style::{BAD, BOLD, DIM, GOOD, NOTE};
pub(crate) use told::{repaired, shortened};

/// Shows what is seen of a run, then its end.
pub(crate) trait Render: Send {
    /// Shows one thing.
    fn see(&mut self, seen: &Seen) -> io::Result<()>;

    /// Shows how it ended.
    fn end(&mut self, end: &End) -> io::Result<()>;
}

/// A renderer at work in a thread of its own, so that a reader who is slow to take the output never
/// holds up the run or Ctrl-C.
pub(crate) struct Rendering(JoinHandle<io::Result<Box<dyn Render>>>);

impl Rendering {
    /// Starts to show a subscription. When the output cannot be written any more, `stop` is fired.
    pub(crate) fn start(
        mut subscription: Subscription,
        mut renderer: Box<dyn Render>,
        stop: Cancel,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let work = move || {
            runtime.block_on(async move {
                while let Some(seen) = subscription.next().await {
                    if let Err(fault) = renderer.see(&seen) {
                        stop.cancel();
                        return Err(fault);
                    }
                }
                Ok(renderer)
            })
        };
        std::thread::Builder::new().name("output".to_owned()).spawn(work).map(Self)
    }

    /// Waits until everything was shown, then shows the end.
    pub(crate) fn finish(self, end: &End) -> io::Result<()> {
        let mut renderer = self.0.join().map_err(|_| io::Error::other("the renderer panicked"))??;
        renderer.end(end)
    }
}
