//! Modes: planning before acting, and other ways of working that a person or the model can switch between.

mod gate;
mod mode;
mod notes;
mod thread;

use std::num::NonZeroUsize;
use std::sync::Arc;

use harness_core::decide::{DynGate, Guarded};
use harness_core::tool::{DynTool, ToolOutcome, tool_fn};
use harness_core::{Json, ThreadId};
use lru::LruCache;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::mode::{Mode, ModeCalls};
pub use self::notes::ModeNotes;
pub use self::thread::ThreadMode;
use self::thread::ThreadState;
use crate::tool_set::ToolSet;

/// The tool by which a model reads the mode.
pub(crate) const GET: &str = "mode_get";

/// The tool by which a model asks for another mode.
pub(crate) const SET: &str = "mode_set";

/// Maximum number of threads with a mode in one process; then the least recently used begins anew.
const MOST_THREADS: usize = 10_000;

/// Modes, of which each thread has one; sub-agents have that of the thread which they work for.
///
/// | part | what it does |
/// |---|---|
/// | [`gate`](Self::gate) | denies calls that the mode does not allow, and says why; also those of sub-agents whose runner has the gate |
/// | [`tools`](Self::tools) | `mode_get` and `mode_set`; that the model sets a mode needs approval, unless [`model_may_set`](Self::model_may_set) |
/// | [`of`](Self::of) | the mode of a thread, which the host reads and sets |
///
/// A thread begins in the first mode. A model receives a note about it, too, unless everything may be
/// called in it.
///
/// ```
/// use harness_core::ThreadId;
/// use harness_tools::Modes;
///
/// let modes = Modes::plan_and_execute();
/// let (first, second) = (ThreadId::from("support-17"), ThreadId::from("support-18"));
/// modes.of(&first).set("execute")?;
/// assert_eq!(&*modes.of(&first).current().name, "execute");
/// assert_eq!(&*modes.of(&second).current().name, "plan");
/// # Ok::<(), harness_tools::ToolsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Modes {
    shared: Arc<Shared>,
    model_may_set: bool,
}

#[derive(Debug)]
struct Shared {
    modes: Vec<Arc<Mode>>,
    states: Mutex<LruCache<Option<ThreadId>, ThreadState>>,
}

impl Modes {
    /// Modes, of which the first is the initial one; of two with one name the first is used.
    pub fn new(first: Mode, others: impl IntoIterator<Item = Mode>) -> Self {
        let mut modes = vec![Arc::new(first)];
        for mode in others {
            if !modes.iter().any(|known| known.name == mode.name) {
                modes.push(Arc::new(mode));
            }
        }
        let most = NonZeroUsize::new(MOST_THREADS).unwrap_or(NonZeroUsize::MIN);
        let states = Mutex::new(LruCache::sparse(most));
        Self { shared: Arc::new(Shared { modes, states }), model_may_set: false }
    }

    /// [`Mode::plan`], then [`Mode::execute`].
    pub fn plan_and_execute() -> Self {
        Self::new(Mode::plan(), [Mode::execute()])
    }

    /// Lets the model set modes without approval. Default: each change requires approval.
    #[must_use]
    pub fn model_may_set(mut self) -> Self {
        self.model_may_set = true;
        self
    }

    /// All modes, in order.
    pub fn all(&self) -> &[Arc<Mode>] {
        &self.shared.modes
    }

    /// The mode of a thread. Work without a thread (`None`, or one without an id) shares one.
    pub fn of<'t>(&self, thread: impl Into<Option<&'t ThreadId>>) -> ThreadMode {
        let thread = thread.into().filter(|id| !id.as_str().is_empty());
        ThreadMode { modes: self.clone(), thread: thread.cloned() }
    }

    /// The gate of calls.
    pub fn gate(&self) -> Guarded<dyn DynGate> {
        gate::of_modes(self.clone())
    }

    /// The tools `mode_get` and `mode_set`.
    pub fn tools(&self) -> ToolSet {
        let (looks, sets) = (self.clone(), self.clone());
        let get = tool_fn(GET, "Returns the current mode and all modes.", move |_: Nothing, cx| {
            let listed = listed(&looks.of(cx.origin.thread.as_ref()));
            async move { ToolOutcome::structured(listed) }
        });
        let description = format!(
            "Asks for another mode: {}.",
            self.all().iter().map(|mode| format!("`{}`", mode.name)).collect::<Vec<_>>().join(", ")
        );
        let set = tool_fn(SET, &description, move |asked: Set, cx| {
            let outcome = match sets.of(cx.origin.thread.as_ref()).set_by_model(&asked.mode) {
                Ok(mode) => ToolOutcome::structured(one(&mode)),
                Err(error) => {
                    let hint = error.hint().unwrap_or_default();
                    ToolOutcome::error("unknown_mode", format!("{error}; {hint}"))
                }
            };
            async move { outcome }
        });
        let set = set.internal().sequential();
        let set: Arc<dyn DynTool> =
            if self.model_may_set { Arc::new(set) } else { Arc::new(set.needs_approval()) };
        ToolSet::new([Arc::new(get.pure()) as _, set])
    }
}

#[derive(Serialize)]
struct Known<'m> {
    mode: &'m str,
    meaning: &'m str,
}

/// The mode of a thread, and all that there are.
fn listed(mode: &ThreadMode) -> Json {
    #[derive(Serialize)]
    struct ModeList<'m> {
        mode: &'m str,
        modes: Vec<Known<'m>>,
    }
    let current = mode.current();
    let modes = mode.all().iter().map(|mode| known(mode)).collect();
    Json::of(&ModeList { mode: &current.name, modes }).unwrap_or_default()
}

fn known(mode: &Mode) -> Known<'_> {
    Known { mode: &mode.name, meaning: &mode.meaning }
}

fn one(mode: &Mode) -> Json {
    Json::of(&known(mode)).unwrap_or_default()
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Set {
    /// The name of the mode.
    mode: String,
}
