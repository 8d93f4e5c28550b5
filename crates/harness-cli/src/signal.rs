//! Ctrl-C: once to stop the run, twice to end the program.

use std::io;

use harness::core::Cancel;

use crate::render::RenderControl;

/// Takes the signals that ask the program to end, from when it is made.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on. Needs a runtime around it.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Fires `cancel` at the first signal, and completes at the second.
    pub(crate) async fn watch(self, cancel: Cancel) {
        self.watch_beside(cancel, &RenderControl::default()).await;
    }

    /// The same while `rendering` shows something: what it says stands between two lines of that.
    pub(crate) async fn watch_beside(mut self, cancel: Cancel, rendering: &RenderControl) {
        self.next().await;
        rendering.notice("stopping; press Ctrl-C again to end at once").await;
        cancel.cancel();
        self.next().await;
        rendering.notice("ended at once; the session is put in order when it is next opened").await;
    }

    /// Completes at the next signal.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
