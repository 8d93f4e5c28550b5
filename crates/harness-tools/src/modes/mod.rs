//! Modes: planning before acting, and other ways of working that a person or the model can switch between.

mod gate;
mod mode;
mod notes;

use std::sync::Arc;

use harness_core::Json;
use harness_core::decide::{DynGate, Guarded};
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::StopMode;
use harness_core::port::Steering;
use harness_core::tool::{DynTool, ToolOutcome, tool_fn};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::mode::{Mode, ModeCalls};
pub use self::notes::ModeNotes;
use crate::error::ToolsError;
use crate::tool_set::ToolSet;

/// The tool by which a model asks for another mode.
pub(crate) const SET: &str = "mode_set";

/// The mode of one conversation, shared by the parts that make it count:
///
/// | part | what it does |
/// |---|---|
/// | [`gate`](Self::gate) | denies calls that the mode does not allow, and says why; also those of sub-agents whose runner has the gate |
/// | [`tools`](Self::tools) | `mode_get` and `mode_set`; that the model sets a mode needs approval, unless [`model_may_set`](Self::model_may_set) |
/// | [`notes`](Self::notes) | notifies the model once, in the user's role, when the host has changed the mode |
/// | [`stop_mode`](Self::stop_mode) | how a run that begins now treats checks of the end |
///
/// The first mode is active at the start. A model receives a note about it, too, unless everything may be
/// called in it.
///
/// ```
/// use harness_core::outcome::StopMode;
/// use harness_tools::Modes;
///
/// let modes = Modes::plan_and_execute();
/// assert_eq!(&*modes.current().name, "plan");
/// assert_eq!(modes.stop_mode(StopMode::StrictAutomation), StopMode::Interactive);
/// modes.set("execute")?;
/// assert_eq!(modes.stop_mode(StopMode::StrictAutomation), StopMode::StrictAutomation);
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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Arc<Mode>,
    /// Mode that the model was informed of last.
    told: Option<Arc<str>>,
    /// Counts changes, so that a note is known by one.
    change: u64,
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
        let state = State::begin(modes.first().map_or_else(|| Arc::new(Mode::execute()), Arc::clone));
        Self { shared: Arc::new(Shared { modes, state: Mutex::new(state) }), model_may_set: false }
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

    /// The mode as it is now.
    pub fn current(&self) -> Arc<Mode> {
        Arc::clone(&self.shared.state.lock().current)
    }

    /// All modes, in order.
    pub fn all(&self) -> &[Arc<Mode>] {
        &self.shared.modes
    }

    /// Changes the mode, as the host. It applies to calls that start from now on, and the model is notified
    /// before it is asked again.
    ///
    /// # Errors
    /// [`ToolsError::UnknownMode`]; the mode stays as it was.
    pub fn set(&self, name: &str) -> Result<(), ToolsError> {
        let mode = self.find(name)?;
        let mut state = self.shared.state.lock();
        state.change += u64::from(state.current.name != mode.name);
        state.current = mode;
        Ok(())
    }

    /// Continues in a mode that the model of a stored thread knows.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn restore(&self, name: &str) -> Result<(), ToolsError> {
        self.settle(name).map(|_| ())
    }

    /// Keeps the mode for a new conversation, whose model does not know of it and is notified.
    pub fn renew(&self) {
        let mut state = self.shared.state.lock();
        let first = self.shared.modes.first().is_some_and(|mode| mode.name == state.current.name);
        let needs_note = !first || state.current.calls != ModeCalls::All;
        state.change += 1;
        state.told = (!needs_note).then(|| Arc::clone(&state.current.name));
    }

    /// How a run that begins now treats a check of the end that is not satisfied, where it is configured to treat it
    /// as `configured`.
    pub fn stop_mode(&self, configured: StopMode) -> StopMode {
        self.current().stop.unwrap_or(configured)
    }

    /// The gate of calls.
    pub fn gate(&self) -> Guarded<dyn DynGate> {
        gate::of_modes(self.clone())
    }

    /// Notes about changes, before what waits in another queue.
    pub fn notes(&self, queue: Option<Arc<dyn Steering>>) -> ModeNotes {
        ModeNotes::new(self.clone(), queue)
    }

    /// The tools `mode_get` and `mode_set`.
    pub fn tools(&self) -> ToolSet {
        let (looks, sets) = (self.clone(), self.clone());
        let get = tool_fn("mode_get", "Returns the current mode and all modes.", move |_: Nothing, _| {
            let told = looks.told();
            async move { ToolOutcome::structured(told) }
        });
        let description = format!(
            "Asks for another mode: {}.",
            self.all().iter().map(|mode| format!("`{}`", mode.name)).collect::<Vec<_>>().join(", ")
        );
        let set = tool_fn(SET, &description, move |asked: Set, _| {
            let outcome = match sets.settle(&asked.mode) {
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

    /// A note about the mode, when the model does not know of it.
    fn waiting(&self) -> Option<(u64, Message)> {
        let state = self.shared.state.lock();
        let mode = &state.current;
        if state.told.as_ref() == Some(&mode.name) {
            return None;
        }
        let text = format!("The mode is `{}` from now on. {}", mode.name, mode.meaning);
        Some((state.change, UserMessage::text(text).from_origin("hook").into()))
    }

    /// The note of that change is in the transcript. A later one is still pending.
    fn told_of(&self, change: u64) {
        let mut state = self.shared.state.lock();
        if state.change == change {
            state.told = Some(Arc::clone(&state.current.name));
        }
    }

    /// Changes the mode to one that the model knows of.
    fn settle(&self, name: &str) -> Result<Arc<Mode>, ToolsError> {
        let mode = self.find(name)?;
        let mut state = self.shared.state.lock();
        state.change += 1;
        state.told = Some(Arc::clone(&mode.name));
        state.current = Arc::clone(&mode);
        Ok(mode)
    }

    fn find(&self, name: &str) -> Result<Arc<Mode>, ToolsError> {
        let found = self.shared.modes.iter().find(|mode| *mode.name == *name).cloned();
        found.ok_or_else(|| ToolsError::UnknownMode {
            mode: name.to_owned(),
            known: self.shared.modes.iter().map(|mode| mode.name.to_string()).collect(),
        })
    }

    fn told(&self) -> Json {
        #[derive(Serialize)]
        struct ModeList<'m> {
            mode: &'m str,
            modes: Vec<Known<'m>>,
        }
        let current = self.current();
        let modes = self.all().iter().map(|mode| known(mode)).collect();
        Json::of(&ModeList { mode: &current.name, modes }).unwrap_or_default()
    }
}

impl State {
    /// The first mode; one that forbids nothing needs no note.
    fn begin(current: Arc<Mode>) -> Self {
        let told = (current.calls == ModeCalls::All).then(|| Arc::clone(&current.name));
        Self { current, told, change: 0 }
    }
}

#[derive(Serialize)]
struct Known<'m> {
    mode: &'m str,
    meaning: &'m str,
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
