//! A program that runs beside the code that started it.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use harness_core::Cancel;
use harness_core::port::BoxFuture;
use harness_host::process::{Capture, run_with};
use harness_host::{Process, ProcessFault, ProcessOutput};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Job;

type Outcome = Result<ProcessOutput, ProcessFault>;

/// Bounded output of a stream.
#[derive(Clone)]
struct Printed(Arc<Mutex<Capture>>);

/// A handle of a program; the task that reads its output ends with it, and the program with the task.
pub(super) struct Running {
    program: String,
    kill: Cancel,
    stdout: Printed,
    outcome: watch::Receiver<Option<Outcome>>,
    task: Option<JoinHandle<()>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("program", &self.program)
            .field("ended", &self.outcome.borrow().is_some())
            .finish_non_exhaustive()
    }
}

/// Starts a program. Errors at its start are returned here, later ones by the handle.
pub(super) async fn start(job: Job, cancel: &Cancel) -> Result<Running, ProcessFault> {
    let (program, kill) = (job.name(), cancel.child());
    let stdout = Printed(Arc::new(Mutex::new(Capture::new(job.options.max_output))));
    let mut work = Box::pin(work(job, kill.clone(), stdout.clone()));
    // The first poll starts it, or does not.
    let first = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    let (tell, outcome) = watch::channel(None);
    let task = match first {
        Poll::Ready(Err(fault)) => return Err(fault),
        Poll::Ready(ended) => {
            tell.send_replace(Some(ended));
            None
        }
        Poll::Pending => Some(tokio::spawn(async move {
            tell.send_replace(Some(work.await));
        })),
    };
    Ok(Running { program, kill, stdout, outcome, task })
}

async fn work(job: Job, kill: Cancel, stdout: Printed) -> Outcome {
    // Its stdout is kept where it can be read meanwhile, and here nothing but its length.
    let launch = job.launch(job.limits().kept(0, job.options.max_output));
    let ended = run_with(launch, kill.cancelled(), |part: &[u8]| stdout.0.lock().push(part)).await;
    job.outcome(ended, Some(&stdout.0.lock()))
}

impl Process for Running {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        let mut outcome = self.outcome.clone();
        Box::pin(async move {
            let ended = outcome.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
            ended.unwrap_or_else(|| {
                let problem = "the runtime that watched it was shut down".to_owned();
                Err(ProcessFault::Lost { program: self.program.clone(), problem })
            })
        })
    }

    fn result(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    fn printed(&self) -> String {
        self.stdout.0.lock().lossy()
    }

    fn kill(&self) {
        self.kill.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
