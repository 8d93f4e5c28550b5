//! A script on the tokio driver.

use std::sync::Arc;

use harness::core::driver::drive;
use harness::core::machine::Start;
use harness::core::message::Message;
use harness::core::port::{
    ApprovalAsk, Approver, Checkpoint, CheckpointStore, Decision, Durability, Entry, EntryHead, Loaded,
    Session, SessionError, Steering,
};
use harness::core::run::Run;
use harness::core::testing::{EventLog, VirtualClock};
use harness::core::transcript::Transcript;
use harness::core::{Cancel, EntryId, Origin, RunId, Time};
use parking_lot::Mutex;

use super::world::{Act, Host, Script};

/// Accepts everything: what is stored is not looked at here.
struct Accepts;

impl Session for Accepts {
    async fn append(&self, _: &EntryHead, _: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

impl CheckpointStore for Accepts {
    async fn save(&self, _: Checkpoint) -> Result<u64, SessionError> {
        Ok(1)
    }

    async fn latest(&self, _: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        Ok(None)
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        Ok(Vec::new())
    }

    async fn clear(&self, _: &RunId) -> Result<(), SessionError> {
        Ok(())
    }
}

struct Grants;

impl Approver for Grants {
    async fn decide(&self, _: ApprovalAsk) -> Decision {
        Decision::Granted
    }
}

#[derive(Default)]
struct Queue(Mutex<Vec<(EntryId, Arc<Message>)>>);

impl Steering for Queue {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        self.0.lock().first().cloned().into_iter().collect()
    }

    fn injected(&self, entries: &[EntryId]) {
        self.0.lock().retain(|(id, _)| !entries.contains(id));
    }
}

/// Plays a script; the lines of its events.
pub(crate) async fn on_tokio(script: &Script) -> Vec<String> {
    let (queue, cancel) = (Arc::new(Queue::default()), Cancel::new());
    let (steering, abort) = (Arc::clone(&queue), cancel.clone());
    let user = Arc::new(move |answer: usize, at: usize, act: &Act| match act {
        Act::Say(_, said) => {
            let entry = EntryId::from(format!("act-{answer}-{at}"));
            steering.0.lock().push((entry, Arc::new(Message::user(*said))));
        }
        Act::Abort(_) => abort.cancel(),
        Act::SayLater(..) | Act::Grant(..) | Act::Deny(..) | Act::Edit(..) => {}
    });
    let host = Host::new(script, Arc::new(VirtualClock::frozen(Time(0))), user);
    let (agent, log) = (host.parts(), EventLog::default());
    let mut ports = agent.ports;
    ports.session = Some(Arc::new(Accepts));
    ports.checkpoints = Some(Arc::new(Accepts));
    ports.approver = Some(Arc::new(Grants));
    ports.steering = Some(queue);
    ports.hub.fold(log.clone());
    let mut origin = Origin::default();
    origin.run = Some("t1-1".into());
    let mut run = Run::new(agent.spec, origin, Transcript::default()).with_control(agent.control);
    drive(&mut run, &ports, &cancel, Start::prompt(Message::user(script.said[0]))).await;
    log.lines()
}
