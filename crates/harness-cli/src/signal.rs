//! Signals: the first one that asks the program to end stops the run, the second one ends the program.

use std::io;
#[cfg(unix)]
use std::sync::atomic::{AtomicI32, Ordering};

use harness::core::Cancel;
#[cfg(unix)]
use harness::host::process::is_ignored;

use crate::exit::Exit;
use crate::render::RenderControl;

/// The first signal that asked the program to end; 0 while there was none.
#[cfg(unix)]
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Takes the signals that ask the program to end, from when it is made: SIGINT, SIGTERM, SIGHUP (the terminal
/// was closed) and SIGQUIT.
pub(crate) struct Signals {
    #[cfg(unix)]
    signals: Vec<(i32, tokio::signal::unix::Signal)>,
}

impl Signals {
    /// Listens from now on. Needs a runtime around it.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut signals = Vec::new();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            signals.push((kind.as_raw_value(), signal(kind)?));
        }
        for kind in [SignalKind::hangup(), SignalKind::quit()] {
            // `nohup` has the program ignore them.
            if !is_ignored(kind.as_raw_value()) {
                signals.push((kind.as_raw_value(), signal(kind)?));
            }
        }
        Ok(Self { signals })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Fires `cancel` at the first signal, and completes at the second.
    pub(crate) async fn watch(self, cancel: Cancel) {
        self.watch_beside(cancel, &RenderControl::default()).await;
    }

    /// Fires `cancel` at the first signal, and completes at the second. Prints notices between lines of `rendering`.
    pub(crate) async fn watch_beside(mut self, cancel: Cancel, rendering: &RenderControl) {
        self.next().await;
        rendering.notice("stopping; press Ctrl-C again to exit immediately").await;
        cancel.cancel();
        self.next().await;
        rendering.notice("exited; the session is repaired when it is next opened").await;
    }

    /// Completes at the next signal.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        use std::task::Poll;
        let number = std::future::poll_fn(|cx| {
            for (number, signal) in &mut self.signals {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        });
        let number = number.await;
        let _ = FIRST.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Discards pending interrupts, which were for a program on the same terminal.
    #[cfg(unix)]
    pub(crate) fn discard_interrupts(&mut self) {
        use std::task::{Context, Waker};
        use tokio::signal::unix::SignalKind;
        let mut cx = Context::from_waker(Waker::noop());
        for (number, signal) in &mut self.signals {
            while *number == SignalKind::interrupt().as_raw_value() && signal.poll_recv(&mut cx).is_ready() {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The ending by the first signal that asked for one, if any did.
pub(crate) fn exit() -> Option<Exit> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::SignalKind;
        let first = FIRST.load(Ordering::Relaxed);
        let is = |kind: SignalKind| kind.as_raw_value() == first;
        if is(SignalKind::hangup()) {
            return Some(Exit::HungUp);
        }
        if is(SignalKind::quit()) {
            return Some(Exit::Quit);
        }
        if is(SignalKind::terminate()) {
            return Some(Exit::Terminated);
        }
        (first != 0).then_some(Exit::Cancelled)
    }
    #[cfg(not(unix))]
    None
}

/// Makes a write beyond the limit of a file's size an error instead of the program's end.
///
/// The handler does nothing. Programs that are started do not inherit it, as they would an ignored signal.
pub(crate) fn survive_size_limit() {
    #[cfg(unix)]
    // Without it the program is as it was.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}
