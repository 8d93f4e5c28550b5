//! States of a thread's tools in its session.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Ports;
use crate::fault::{Fault, FaultSource};
use crate::json::Json;
use crate::origin::Origin;
use crate::port::Stateful;

/// States of a thread's tools that its session holds. Clones share them.
///
/// A driver appends a state ([`Entry::State`](crate::port::Entry::State)) when it differs from the stored one, together with
/// the next entries of a run. A thread keeps one value for all its runs, so that a state is not stored again without a change.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use harness_core::driver::{Ports, StoredStates};
/// use harness_core::{Json, Origin};
///
/// /// Continues a thread with the states of its session.
/// fn go_on(thread: &StoredStates, ports: &mut Ports, origin: &Origin, states: BTreeMap<String, Json>) {
///     thread.load(ports, origin, states);
///     ports.stored_states = thread.clone();
/// }
/// # let _ = go_on;
/// ```
#[derive(Clone, Debug, Default)]
pub struct StoredStates(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    states: BTreeMap<String, Json>,
    /// States that were too large, so that each is reported once.
    rejected: BTreeMap<String, Json>,
    /// The last state that was too large, until it is reported.
    too_large: Option<Fault>,
}

impl StoredStates {
    /// Bytes of a state, at most, as JSON: 64 KiB. A larger one is not stored; a run reports it once.
    pub const LIMIT: usize = 64 << 10;

    /// Continues with the states of a session that was loaded. A state that this process changed since it was last stored
    /// stays.
    pub fn load(&self, ports: &Ports, origin: &Origin, states: BTreeMap<String, Json>) {
        let before = std::mem::replace(&mut self.0.lock().states, states.clone());
        for state in of_thread(ports) {
            let here = state.save_state(origin).map(|saved| redacted(ports, saved));
            if here.is_none() || here.as_ref() == before.get(state.name()) {
                state.restore_state(origin, states.get(state.name()));
            }
        }
    }

    /// States that differ from the stored ones.
    pub(super) fn changed(&self, ports: &Ports, origin: &Origin) -> Vec<(String, Json)> {
        let mut changed = Vec::new();
        for state in of_thread(ports) {
            let Some(saved) = state.save_state(origin).map(|saved| redacted(ports, saved)) else { continue };
            let mut stored = self.0.lock();
            if [&stored.states, &stored.rejected].iter().any(|known| known.get(state.name()) == Some(&saved))
            {
                continue;
            }
            let bytes = saved.text().len();
            if bytes <= Self::LIMIT {
                changed.push((state.name().to_owned(), saved));
                continue;
            }
            stored.rejected.insert(state.name().to_owned(), saved);
            stored.too_large = Some(Fault::new(
                FaultSource::Session,
                "session.state_too_large",
                format!(
                    "the state `{}` has {bytes} bytes, {} are permitted; the session keeps the last smaller one",
                    state.name(),
                    Self::LIMIT
                ),
            ));
        }
        changed
    }

    /// Notes that the session has these.
    pub(super) fn store(&self, states: Vec<(String, Json)>) {
        self.0.lock().states.extend(states);
    }

    /// Takes the report about a state that was too large.
    pub(super) fn take_notice(&self) -> Option<Fault> {
        self.0.lock().too_large.take()
    }
}

fn of_thread(ports: &Ports) -> impl Iterator<Item = &dyn Stateful> {
    ports.run_states().filter(|state| state.is_of_thread())
}

fn redacted(ports: &Ports, saved: Json) -> Json {
    match &ports.redactor {
        Some(redactor) => redactor.json(&saved),
        None => saved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;
    use crate::testing::{ScriptedModel, VirtualClock};
    use crate::time::Time;

    /// A text of the thread.
    #[derive(Default)]
    struct Text(Mutex<Option<String>>);

    impl Stateful for Text {
        fn name(&self) -> &'static str {
            "text"
        }

        fn has_tool(&self, _: &str) -> bool {
            false
        }

        fn save_state(&self, _: &Origin) -> Option<Json> {
            self.0.lock().as_deref().map(Json::string)
        }

        fn restore_state(&self, _: &Origin, saved: Option<&Json>) {
            *self.0.lock() = saved.and_then(|saved| saved.to().ok());
        }

        fn is_of_thread(&self) -> bool {
            true
        }
    }

    /// A process with the text, and what its thread stored.
    fn process(text: Option<&str>) -> (Arc<Text>, Ports, StoredStates) {
        let clock = Arc::new(VirtualClock::frozen(Time(0)));
        let mut ports = Ports::new(Arc::new(ScriptedModel::new([AssistantMessage::text("done")])), clock);
        let here = Arc::new(Text(Mutex::new(text.map(str::to_owned))));
        ports.states.push(here.clone());
        (here, ports, StoredStates::default())
    }

    fn stored(text: &str) -> BTreeMap<String, Json> {
        [("text".to_owned(), Json::string(text))].into()
    }

    /// The text of a process after it loaded a session.
    #[track_caller]
    fn check_load(here: Option<&str>, before: Option<&str>, loaded: Option<&str>, expected: Option<&str>) {
        let (text, ports, states) = process(here);
        states.store(before.map(stored).into_iter().flatten().collect());
        states.load(&ports, &Origin::default(), loaded.map(stored).unwrap_or_default());
        assert_eq!(text.0.lock().as_deref(), expected);
    }

    #[test]
    fn a_process_continues_with_the_stored_state_unless_it_changed_it() {
        check_load(None, None, Some("a"), Some("a"));
        check_load(Some("a"), Some("a"), Some("b"), Some("b"));
        check_load(Some("b"), Some("a"), Some("a"), Some("b"));
        check_load(Some("b"), None, Some("a"), Some("b"));
        check_load(Some("a"), Some("a"), None, None);
    }

    #[test]
    fn a_state_is_stored_when_it_changes_and_a_large_one_is_reported_once() {
        let (text, ports, states) = process(Some("a"));
        let changed = || states.changed(&ports, &Origin::default());
        assert_eq!(changed(), [("text".to_owned(), Json::string("a"))]);
        assert_eq!(changed().len(), 1, "it is not stored yet");
        states.store(changed());
        assert_eq!(changed(), []);
        for bytes in [StoredStates::LIMIT - 1, StoredStates::LIMIT] {
            // The quotes are part of it.
            *text.0.lock() = Some("x".repeat(bytes));
            assert_eq!(changed(), []);
            let notice = states.take_notice().expect("a report");
            let size = bytes + 2;
            let said = format!(
                "the state `text` has {size} bytes, 65536 are permitted; the session keeps the last smaller one"
            );
            assert_eq!((&*notice.code, notice.message), ("session.state_too_large", said));
            assert_eq!((changed(), states.take_notice()), (Vec::new(), None));
        }
        *text.0.lock() = Some("x".repeat(StoredStates::LIMIT - 2));
        assert_eq!(changed().len(), 1);
    }
}
