//! Sessions that outlive a crash: what was written is there again, what was not is gone.

use std::sync::{Arc, Weak};

use harness_core::message::Message;
use harness_core::port::{Durability, DynSession, Entry, EntryHead, Loaded, OpenCall, Session, SessionError};
use harness_core::tool::RetryClass;
use harness_core::transcript::{Plan, Transcript, View};
use harness_core::{CallId, ThreadId};
use harness_runtime::Sessions;

use super::tricks::Trick;
use super::world::World;

/// What a session holds, over all lives.
#[derive(Default)]
pub(super) struct Shelf {
    entries: Vec<Stored>,
    /// The session that was opened last: nobody else may have it open.
    opened: Option<Weak<SimSession>>,
}

enum Stored {
    Message(Arc<Message>),
    Started(CallId, u32, RetryClass),
    Finished(CallId, u32, RetryClass, Arc<Message>),
    Shorter(Plan, bool),
    Ended,
}

impl Stored {
    fn of(entry: &Entry<'_>) -> Option<Self> {
        Some(match *entry {
            Entry::Message(message) => Self::Message(Arc::clone(message)),
            Entry::CallStarted { call, attempt, class } => Self::Started(call.clone(), attempt, *class),
            Entry::CallFinished { call, attempt, class, result } => {
                Self::Finished(call.clone(), attempt, *class, Arc::clone(result))
            }
            Entry::Compaction { plan, permanent, .. } => Self::Shorter(plan.clone(), permanent),
            Entry::RunEnd { .. } => Self::Ended,
            _ => return None,
        })
    }
}

impl Shelf {
    /// Every message that was ever stored, in order.
    pub(super) fn all(&self) -> Vec<Arc<Message>> {
        let message = |stored: &Stored| match stored {
            Stored::Message(message) => Some(Arc::clone(message)),
            _ => None,
        };
        self.entries.iter().filter_map(message).collect()
    }

    /// What a load gives.
    pub(super) fn load(&self) -> Loaded {
        let mut loaded = Loaded::default();
        let mut answered: Vec<CallId> = Vec::new();
        for stored in &self.entries {
            match stored {
                Stored::Message(message) => {
                    if message.as_assistant().is_some() {
                        answered.clear();
                        loaded.open_calls.clear();
                    } else if let Some(result) = message.as_tool_result() {
                        answered.push(result.tool_call_id.clone());
                        loaded.open_calls.retain(|open| open.call != result.tool_call_id);
                    }
                    loaded.messages.push(Arc::clone(message));
                }
                Stored::Started(call, attempt, class) if !answered.contains(call) => {
                    note(&mut loaded, OpenCall::new(call.clone(), *attempt, *class, None));
                }
                Stored::Finished(call, attempt, class, result) if !answered.contains(call) => {
                    let result = Some(Arc::clone(result));
                    note(&mut loaded, OpenCall::new(call.clone(), *attempt, *class, result));
                }
                Stored::Shorter(plan, true) => {
                    let log: Transcript = loaded.messages.drain(..).collect();
                    let view = View::planned(log.prefix(), plan.clone());
                    view.for_each(|message| loaded.messages.push(Arc::clone(message)));
                    loaded.plan = None;
                }
                Stored::Shorter(plan, false) => loaded.plan = Some(plan.clone()),
                Stored::Started(..) | Stored::Finished(..) | Stored::Ended => {}
            }
            loaded.ended = matches!(stored, Stored::Ended);
        }
        loaded
    }
}

fn note(loaded: &mut Loaded, open: OpenCall) {
    match loaded.open_calls.iter_mut().find(|known| known.call == open.call) {
        Some(known) => *known = open,
        None => loaded.open_calls.push(open),
    }
}

/// The folder of sessions.
pub(super) struct Cupboard(pub(super) Arc<World>);

/// An open session of one thread.
pub(super) struct SimSession {
    world: Arc<World>,
    thread: String,
}

impl Sessions for Cupboard {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let world = &self.0;
        world.count_open();
        if world.is_broken() {
            world.log(thread.as_str(), "the session cannot be opened");
            return Err(SessionError::new("sim.open", "the disk is gone"));
        }
        world.pause().await;
        let opened = Arc::new(SimSession { world: Arc::clone(world), thread: thread.to_string() });
        let twice = world.shelf(thread.as_str(), |shelf| {
            let before = shelf.opened.replace(Arc::downgrade(&opened));
            before.is_some_and(|before| before.strong_count() > 0)
        });
        if world.plays(Trick::StaysOpen) {
            world.lock().kept.push(Arc::clone(&opened));
        }
        world.expect(!twice, || format!("the session of {thread} is open twice"));
        Ok(opened)
    }
}

impl SimSession {
    fn write(&self, entries: &[Entry<'_>]) -> Result<(), SessionError> {
        if self.world.fails() {
            self.world.log(&self.thread, "the session cannot be written");
            return Err(SessionError::new("sim.write", "the disk is full"));
        }
        let stored = self.tampered(entries.iter().filter_map(Stored::of).collect());
        self.world.shelf(&self.thread, |shelf| shelf.entries.extend(stored));
        Ok(())
    }
}

impl SimSession {
    /// What is really written.
    fn tampered(&self, mut entries: Vec<Stored>) -> Vec<Stored> {
        let world = &self.world;
        if world.trick.is_none() {
            return entries;
        }
        let users = |entry: &Stored| matches!(entry, Stored::Message(m) if matches!(**m, Message::User(_)));
        let results = |entry: &Stored| matches!(entry, Stored::Message(m) if m.as_tool_result().is_some());
        entries.retain(|entry| {
            let lost = users(entry) && world.strikes(Trick::LosesMessage)
                || results(entry) && world.strikes(Trick::LosesResult);
            !lost
        });
        let said: Vec<usize> = (0..entries.len()).filter(|at| users(&entries[*at])).collect();
        if let [first, .., last] = said[..]
            && world.plays(Trick::Swaps)
        {
            entries.swap(first, last);
        }
        if let [first, ..] = said[..]
            && world.strikes(Trick::WritesTwice)
            && let Stored::Message(message) = &entries[first]
        {
            entries.insert(first, Stored::Message(Arc::clone(message)));
        }
        entries
    }
}

impl Session for SimSession {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        if self.world.plan.appends_at_once {
            return self.write(entries);
        }
        // A crash may come before what is written, and before anybody hears that it is.
        self.world.pause().await;
        if self.world.strikes(Trick::Hangs) {
            std::future::pending::<()>().await;
        }
        self.write(entries)?;
        self.world.pause().await;
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        self.world.pause().await;
        if self.world.fails() {
            return Err(SessionError::new("sim.load", "the disk is gone"));
        }
        let mut loaded = self.world.shelf(&self.thread, |shelf| shelf.load());
        if self.world.plays(Trick::LoadsShort) {
            loaded.messages.pop();
        }
        Ok(loaded)
    }
}
