//! The port that runs programs elsewhere than on this machine.

use std::io;

use harness_core::port::BoxFuture;

use crate::process::run::{Ended, Launch};

/// Runs programs somewhere: on another machine, in a container, or not at all in a test. [`run_with`](crate::process::run_with) runs them on this
/// machine.
///
/// ```
/// use std::io;
/// use std::os::unix::process::ExitStatusExt as _;
/// use std::process::ExitStatus;
///
/// use harness_core::port::BoxFuture;
/// use harness_host::process::{Capture, Ended, Ending, Launch, Launcher};
///
/// /// Prints the arguments instead of running anything.
/// struct Dry;
///
/// impl Launcher for Dry {
///     async fn launch(
///         &self,
///         launch: Launch<'_>,
///         _: BoxFuture<'_, ()>,
///         tap: &mut (dyn FnMut(&[u8]) + Send),
///     ) -> io::Result<Ended> {
///         let mut stdout = Capture::new(launch.limits.stdout);
///         for argument in &launch.program.args {
///             stdout.push(argument.as_encoded_bytes());
///             tap(argument.as_encoded_bytes());
///         }
///         Ok(Ended::new(Ending::Exited(ExitStatus::from_raw(0)), stdout, Capture::new(0)))
///     }
/// }
/// ```
pub trait Launcher: Send + Sync {
    /// Runs a program to its end, within the limits of `launch`, and passes each part of stdout to `tap`. `unwanted`
    /// completes when the run is cancelled. Nothing of the program is left when the future ends or is dropped.
    ///
    /// # Errors
    /// When it cannot be started, or it is no longer known.
    fn launch(
        &self,
        launch: Launch<'_>,
        unwanted: BoxFuture<'_, ()>,
        tap: &mut (dyn FnMut(&[u8]) + Send),
    ) -> impl Future<Output = io::Result<Ended>> + Send;
}

harness_core::twin! {
    DynLauncher of Launcher {
        async fn launch_boxed = launch(
            launch: Launch<'a>,
            unwanted: BoxFuture<'a, ()>,
            tap: &'a mut (dyn FnMut(&[u8]) + Send)
        ) -> io::Result<Ended>;
    }
}
