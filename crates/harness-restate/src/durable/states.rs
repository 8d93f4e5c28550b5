//! States of memory layers and tools, which travel with the journal of their run: any worker continues with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::core::driver::{Ports, StoredStates};
use harness::core::machine::{Op, Reply};
use harness::core::port::{RunBeginning, Stateful};
use harness::core::tool::ToolOutcome;
use harness::core::{Json, Origin, ToolName};

/// Bytes of a state that ends with its run, at most: it is in journal entries. 512 KiB.
const RUN_LIMIT: usize = 512 << 10;

/// Bytes of a state of a thread, at most: each request to the thread reads it.
const THREAD_LIMIT: usize = StoredStates::LIMIT;

type Saved = BTreeMap<String, Json>;

/// Whether the operation of a step asks layers.
pub(super) const fn asks(op: &Op) -> bool {
    matches!(op, Op::LayerStore { .. } | Op::Complete { .. })
}

/// Whether calls of a tool read or change a state.
pub(super) fn has_tool(ports: &Ports, tool: &ToolName) -> bool {
    ports.run_states().any(|state| state.has_tool(tool.as_str()))
}

/// Bytes of states in an entry of the journal.
pub(super) fn size_of(states: Option<&Json>) -> u64 {
    states.map_or(0, |states| states.text().len() as u64)
}

/// States with the changes of an operation.
pub(super) fn merged(states: Option<Json>, changed: Option<&Json>) -> Option<Json> {
    let Some(changed) = changed else { return states };
    let mut states = read(states.as_ref());
    states.extend(read(Some(changed)));
    written(&states)
}

/// The states that belong to the thread of a run.
pub(super) fn of_thread(ports: &Ports, states: Option<&Json>) -> Option<Json> {
    let mut states = read(states);
    states.retain(|name, _| ports.run_states().any(|state| state.is_of_thread() && state.name() == name));
    written(&states)
}

/// The states of a run, in this process and as they are journaled.
pub(super) struct States<'p> {
    ports: &'p Ports,
    origin: &'p Origin,
    journaled: Saved,
    /// Accepted states of calls, which the journal does not have yet.
    accepted: Saved,
    /// Whether states that end with the run stay as they are: another attempt may use them in this process.
    is_of_thread: bool,
}

impl<'p> States<'p> {
    /// Puts the states of this process where the run is.
    pub(super) fn restored(ports: &'p Ports, origin: &'p Origin, journaled: Option<&Json>) -> Self {
        Self::new(ports, origin, journaled, false)
    }

    /// Begins a run with the states of its thread, which take part in it.
    pub(super) fn begun(
        ports: &'p Ports,
        origin: &'p Origin,
        journaled: Option<&Json>,
        run: &mut RunBeginning,
    ) -> Self {
        let this = Self::new(ports, origin, journaled, true);
        this.all().for_each(|state| state.begin_run(origin, run));
        this
    }

    fn new(ports: &'p Ports, origin: &'p Origin, journaled: Option<&Json>, is_of_thread: bool) -> Self {
        let journaled = read(journaled);
        let this = Self { ports, origin, accepted: journaled.clone(), journaled, is_of_thread };
        this.all().for_each(|state| state.restore_state(origin, this.journaled.get(state.name())));
        this
    }

    fn all(&self) -> impl Iterator<Item = &'p dyn Stateful> {
        let is_of_thread = self.is_of_thread;
        self.ports.run_states().filter(move |state| !is_of_thread || state.is_of_thread())
    }

    /// The reply to a call, or an error in its place if the state would be too large: the call then changed nothing.
    pub(super) fn accept(&mut self, tool: &ToolName, reply: Reply) -> Reply {
        let Some(state) = self.ports.run_states().find(|state| state.has_tool(tool.as_str())) else {
            return reply;
        };
        let (Some(saved), limit) = (self.saved(state), limit(state)) else { return reply };
        let bytes = saved.text().len();
        if bytes <= limit {
            self.accepted.insert(state.name().to_owned(), saved);
            return reply;
        }
        state.restore_state(self.origin, self.accepted.get(state.name()));
        let text = format!(
            "the call changed nothing: `{}` would have {bytes} bytes, {limit} are permitted; store less, or remove \
             something",
            state.name()
        );
        Reply::Tool(Ok(Arc::new(ToolOutcome::error("state_too_large", text))))
    }

    /// The states that operations changed since they were journaled.
    pub(super) fn changed(self) -> Option<Json> {
        let mut states = Saved::new();
        for state in self.all() {
            let Some(saved) = self.saved(state) else { continue };
            let (bytes, limit) = (saved.text().len(), limit(state));
            if bytes <= limit {
                if self.journaled.get(state.name()) != Some(&saved) {
                    states.insert(state.name().to_owned(), saved);
                }
                continue;
            }
            tracing::warn!(
                run = self.origin.run.as_ref().map(tracing::field::display),
                state = state.name(),
                "a state has {bytes} bytes, {limit} are permitted; its last changes are lost"
            );
        }
        written(&states)
    }

    fn saved(&self, state: &dyn Stateful) -> Option<Json> {
        let saved = state.save_state(self.origin)?;
        Some(self.ports.redactor.as_ref().map_or_else(|| saved.clone(), |redactor| redactor.json(&saved)))
    }
}

fn limit(state: &dyn Stateful) -> usize {
    if state.is_of_thread() { THREAD_LIMIT } else { RUN_LIMIT }
}

fn read(states: Option<&Json>) -> Saved {
    states.and_then(|states| states.to().ok()).unwrap_or_default()
}

fn written(states: &Saved) -> Option<Json> {
    (!states.is_empty()).then(|| Json::of(states).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use harness::core::Time;
    use harness::core::message::AssistantMessage;
    use harness::core::testing::{ScriptedModel, VirtualClock};
    use parking_lot::Mutex;

    use super::*;

    /// A text, which the tool `write` replaces.
    #[derive(Default)]
    struct Text {
        text: Mutex<Option<String>>,
        is_of_thread: bool,
    }

    impl Stateful for Text {
        fn name(&self) -> &'static str {
            "text"
        }

        fn has_tool(&self, name: &str) -> bool {
            name == "write"
        }

        fn save_state(&self, _: &Origin) -> Option<Json> {
            self.text.lock().as_deref().map(Json::string)
        }

        fn restore_state(&self, _: &Origin, saved: Option<&Json>) {
            *self.text.lock() = saved.and_then(|saved| saved.to().ok());
        }

        fn is_of_thread(&self) -> bool {
            self.is_of_thread
        }
    }

    /// What the call of a tool gives whose state then has so many bytes, and whether the journal gets the state.
    #[track_caller]
    fn check(is_of_thread: bool, bytes: usize, code: Option<&str>) {
        let text = Arc::new(Text { is_of_thread, ..Text::default() });
        let clock = Arc::new(VirtualClock::frozen(Time(0)));
        let mut ports = Ports::new(Arc::new(ScriptedModel::new([AssistantMessage::text("done")])), clock);
        ports.states.push(text.clone());
        let origin = Origin::default();
        let before = Json::parse(r#"{"text":"before"}"#).unwrap();
        let mut states = States::restored(&ports, &origin, Some(&before));
        // The quotes are part of it.
        *text.text.lock() = Some("x".repeat(bytes - 2));
        let reply = states.accept(&"write".into(), Reply::Tool(Ok(Arc::new(ToolOutcome::text("done")))));
        let Reply::Tool(Ok(outcome)) = reply else { panic!("{reply:?}") };
        assert_eq!(outcome.error.as_ref().map(|error| &*error.code), code);
        let left = text.text.lock().as_deref().map(str::len);
        assert_eq!(left, Some(if code.is_some() { "before".len() } else { bytes - 2 }));
        assert_eq!(states.changed().is_some(), code.is_none());
    }

    #[test]
    fn a_call_that_would_make_a_state_too_large_changes_nothing() {
        check(false, RUN_LIMIT, None);
        check(false, RUN_LIMIT + 1, Some("state_too_large"));
        check(true, THREAD_LIMIT, None);
        check(true, THREAD_LIMIT + 1, Some("state_too_large"));
    }
}
