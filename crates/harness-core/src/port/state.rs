//! State of a run that tools and memory layers keep in the memory of their process.

use crate::json::Json;
use crate::message::Message;
use crate::origin::Origin;
use crate::outcome::StopMode;

/// Tools or memory layers that keep state in the memory of their process for each run or thread: modes, lists, what
/// layers know.
///
/// A driver of one process leaves the state there, and stores that of a thread in its session
/// ([`StoredStates`](crate::driver::StoredStates)). A driver over a durable engine continues a run in any process: it restores
/// the state before the operations that use it, and journals what they changed. Calls of its tools are performed one after the
/// other.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use harness_core::port::Stateful;
/// use harness_core::{Json, Origin};
///
/// /// Counts calls of the tool `count` in the whole process, which has one run.
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl Stateful for Count {
///     fn name(&self) -> &str {
///         "count"
///     }
///
///     fn has_tool(&self, name: &str) -> bool {
///         name == "count"
///     }
///
///     fn save_state(&self, _: &Origin) -> Option<Json> {
///         Json::of(&self.0.load(Ordering::Relaxed)).ok()
///     }
///
///     fn restore_state(&self, _: &Origin, saved: Option<&Json>) {
///         self.0.store(saved.and_then(|saved| saved.to().ok()).unwrap_or(0), Ordering::Relaxed);
///     }
/// }
///
/// let (first, second, origin) = (Count::default(), Count::default(), Origin::default());
/// first.0.store(2, Ordering::Relaxed);
/// second.restore_state(&origin, first.save_state(&origin).as_ref());
/// assert_eq!(second.0.into_inner(), 2);
/// ```
pub trait Stateful: Send + Sync {
    /// Name, unique among the states of a run.
    fn name(&self) -> &str;

    /// Whether a tool reads or changes the state.
    fn has_tool(&self, name: &str) -> bool;

    /// Returns the state of a run, or of its thread; `None` if it has none, or the one that all begin with.
    fn save_state(&self, origin: &Origin) -> Option<Json>;

    /// Replaces the state by a saved one; `None` is a run or thread that has none. A saved state that cannot be read is none.
    fn restore_state(&self, origin: &Origin, saved: Option<&Json>);

    /// Whether the state belongs to the thread: its session stores it, the next run has it, and sub-agents begin with that of
    /// their caller.
    /// Default: no, it ends with the run.
    fn is_of_thread(&self) -> bool {
        false
    }

    /// Takes part in the beginning of a run, with its state restored; a state of the thread alone. Default: does nothing.
    fn begin_run(&self, _origin: &Origin, _run: &mut RunBeginning) {}
}

/// How a run begins.
///
/// ```
/// use harness_core::message::Message;
/// use harness_core::outcome::StopMode;
/// use harness_core::port::RunBeginning;
///
/// let mut run = RunBeginning::new(StopMode::StrictAutomation);
/// run.mode = StopMode::Interactive;
/// run.notes.push(Message::user("The mode is `plan` from now on."));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunBeginning {
    /// Treatment of an end that a check rejects.
    pub mode: StopMode,
    /// Messages for the model behind the prompt. Default none.
    pub notes: Vec<Message>,
}

impl RunBeginning {
    /// A run that is configured to treat a rejected end like this.
    pub fn new(mode: StopMode) -> Self {
        Self { mode, notes: Vec::new() }
    }
}
