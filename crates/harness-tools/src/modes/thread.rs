//! The mode of one thread.

use std::sync::Arc;

use harness_core::message::{Message, UserMessage};
use harness_core::outcome::StopMode;
use harness_core::port::{RunBeginning, Stateful, Steering};
use harness_core::{Json, Origin, ThreadId};
use serde::{Deserialize, Serialize};

use super::{GET, Mode, ModeCalls, ModeNotes, Modes, SET};
use crate::error::ToolsError;

/// The mode of one thread, made by [`Modes::of`]. Clones share it.
///
/// | part | what it does |
/// |---|---|
/// | [`set`](Self::set) | changes the mode, as the host |
/// | [`notes`](Self::notes) | notifies the model once, in the user's role, when the host has changed the mode |
/// | [`stop_mode`](Self::stop_mode) | how a run that begins now treats checks of the end |
///
/// ```
/// use harness_core::outcome::StopMode;
/// use harness_tools::Modes;
///
/// let mode = Modes::plan_and_execute().of(None);
/// assert_eq!(&*mode.current().name, "plan");
/// assert_eq!(mode.stop_mode(StopMode::StrictAutomation), StopMode::Interactive);
/// mode.set("execute")?;
/// assert_eq!(mode.stop_mode(StopMode::StrictAutomation), StopMode::StrictAutomation);
/// # Ok::<(), harness_tools::ToolsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThreadMode {
    pub(super) modes: Modes,
    pub(super) thread: Option<ThreadId>,
}

#[derive(Debug)]
pub(super) struct ThreadState {
    current: Arc<Mode>,
    /// Mode that the model was informed of last.
    informed: Option<Arc<str>>,
    /// Counts changes, so that a note is known by one.
    change: u64,
}

impl ThreadMode {
    /// The mode as it is now.
    pub fn current(&self) -> Arc<Mode> {
        self.with(|state| Arc::clone(&state.current))
    }

    /// All modes, in order.
    pub fn all(&self) -> &[Arc<Mode>] {
        self.modes.all()
    }

    /// Changes the mode, as the host. It applies to calls that start from now on, and the model is notified
    /// before it is asked again. A mode that a session stored does not replace it.
    ///
    /// # Errors
    /// [`ToolsError::UnknownMode`]; the mode stays as it was.
    pub fn set(&self, name: &str) -> Result<(), ToolsError> {
        let mode = self.find(name)?;
        self.with(|state| {
            state.change += u64::from(state.change == 0 || state.current.name != mode.name);
            state.current = mode;
        });
        Ok(())
    }

    /// How a run that begins now treats a check of the end that is not satisfied, where it is configured to treat it
    /// as `configured`.
    pub fn stop_mode(&self, configured: StopMode) -> StopMode {
        self.current().stop.unwrap_or(configured)
    }

    /// Notes about changes, before what waits in another queue.
    pub fn notes(&self, queue: Option<Arc<dyn Steering>>) -> ModeNotes {
        ModeNotes::new(self.clone(), queue)
    }

    /// A note about the mode, when the model does not know of it, and the change that it is of.
    pub(super) fn note(&self) -> Option<(u64, Message)> {
        self.with(|state| {
            let mode = &state.current;
            if state.informed.as_ref() == Some(&mode.name) {
                return None;
            }
            let text = format!("The mode is `{}` from now on. {}", mode.name, mode.meaning);
            Some((state.change, UserMessage::text(text).from_origin("hook").into()))
        })
    }

    /// The note of that change is in the transcript. A later one is still pending.
    pub(super) fn noted(&self, change: u64) {
        self.with(|state| {
            if state.change == change {
                state.informed = Some(Arc::clone(&state.current.name));
            }
        });
    }

    /// Changes the mode at the model's request: it knows of the change, so no note informs it.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_by_model(&self, name: &str) -> Result<Arc<Mode>, ToolsError> {
        let mode = self.find(name)?;
        self.with(|state| {
            state.change += 1;
            state.informed = Some(Arc::clone(&mode.name));
            state.current = Arc::clone(&mode);
        });
        Ok(mode)
    }

    fn find(&self, name: &str) -> Result<Arc<Mode>, ToolsError> {
        let found = self.all().iter().find(|mode| *mode.name == *name).cloned();
        found.ok_or_else(|| ToolsError::UnknownMode {
            mode: name.to_owned(),
            known: self.all().iter().map(|mode| mode.name.to_string()).collect(),
        })
    }

    /// Does something with the state of the thread, which begins in the first mode.
    fn with<R>(&self, work: impl FnOnce(&mut ThreadState) -> R) -> R {
        let mut states = self.modes.shared.states.lock();
        work(states.get_or_insert_mut(self.thread.clone(), || ThreadState::begin(self.all())))
    }
}

impl ThreadState {
    /// The first mode; one that forbids nothing needs no note.
    fn begin(modes: &[Arc<Mode>]) -> Self {
        let current = modes.first().map_or_else(|| Arc::new(Mode::execute()), Arc::clone);
        let informed = (current.calls == ModeCalls::All).then(|| Arc::clone(&current.name));
        Self { current, informed, change: 0 }
    }

    fn is_first(&self, modes: &[Arc<Mode>]) -> bool {
        self.change == 0 && self.informed == Self::begin(modes).informed
    }
}

/// State of a thread in another process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedMode {
    mode: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    informed: Option<Arc<str>>,
    change: u64,
}

/// The mode of a thread, which its next run continues in, and in which its sub-agents begin.
impl Stateful for Modes {
    fn name(&self) -> &'static str {
        "modes"
    }

    fn has_tool(&self, name: &str) -> bool {
        [GET, SET].contains(&name)
    }

    fn save_state(&self, origin: &Origin) -> Option<Json> {
        let states = self.shared.states.lock();
        let state = states.peek(&origin.thread).filter(|state| !state.is_first(self.all()))?;
        let ThreadState { current, informed, change } = state;
        let saved =
            SavedMode { mode: Arc::clone(&current.name), informed: informed.clone(), change: *change };
        Json::of(&saved).ok()
    }

    fn restore_state(&self, origin: &Origin, saved: Option<&Json>) {
        let saved: Option<SavedMode> = saved.and_then(|saved| saved.to().ok());
        let known = saved.and_then(|saved| {
            let current = self.all().iter().find(|mode| mode.name == saved.mode)?;
            Some(ThreadState { current: Arc::clone(current), informed: saved.informed, change: saved.change })
        });
        let mut states = self.shared.states.lock();
        match known {
            Some(state) => states.put(origin.thread.clone(), state),
            None => states.pop(&origin.thread),
        };
    }

    fn is_of_thread(&self) -> bool {
        true
    }

    fn begin_run(&self, origin: &Origin, run: &mut RunBeginning) {
        let mode = self.of(origin.thread.as_ref());
        run.mode = mode.stop_mode(run.mode);
        if let Some((change, note)) = mode.note() {
            mode.noted(change);
            run.notes.push(note);
        }
    }
}
