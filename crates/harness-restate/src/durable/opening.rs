//! The beginning of an invocation: the machine of a run over its log.

use std::sync::Arc;

use harness::core::driver::Ports;
use harness::core::machine::{Journal, Start, ViewState};
use harness::core::outcome::StopMode;
use harness::core::port::{ApprovalAsk, Approver, Checkpoint, Decision, Loaded, RunBeginning};
use harness::core::run::{Run, RunResume};
use harness::core::{Json, Origin};
use harness::runtime::DeliveryRules;

use super::child::parts;
use super::context::{Begin, DriveInput, Stopped};
use super::host::{Agent, AgentHost, ThreadStore};
use super::reader::Reader;
use super::request::ResumeAsk;
use super::states::{States, merged};

/// A run, and what it needs.
pub(super) struct Opened {
    pub(super) machine: Run,
    pub(super) start: Start,
    pub(super) ports: Ports,
    pub(super) delivery: DeliveryRules,
    /// Ids of its work.
    pub(super) origin: Origin,
    /// States of tools and layers.
    pub(super) states: Option<Json>,
    /// Treatment of an end that a check rejects.
    pub(super) mode: StopMode,
}

/// The machine of a run, its start and its ports; or why it cannot begin.
pub(super) async fn open(
    host: &impl AgentHost,
    reader: &Reader<impl ThreadStore>,
    input: &DriveInput,
) -> Result<Result<Opened, String>, Stopped> {
    let loaded = reader.fold(&input.thread(), input.first..input.log, Journal::reopen).await?;
    let saved = match &input.begin {
        Begin::Saved { state, .. } => Some(reader.get(&input.thread(), state).await?),
        Begin::Messages { .. } | Begin::Resumed { .. } | Begin::Parked | Begin::Compact { .. } => None,
    };
    let agent = parts(host, &input.origin, &input.agents, input.delegation.as_ref()).await;
    Ok(agent.map_err(|fault| fault.message).and_then(|agent| make(agent, input, loaded, saved.as_deref())))
}

/// The machine of a run over what its log holds, and the state that the invocation before this one left.
fn make(agent: Agent, input: &DriveInput, loaded: Loaded, saved: Option<&str>) -> Result<Opened, String> {
    let Agent { mut ports, mut spec, control, delivery, allowed_tools } = agent;
    let mut origin = input.origin.clone();
    origin.allowed_tools = allowed_tools.or(origin.allowed_tools);
    let (beginning, states) = begun(&ports, &origin, input, spec.mode);
    let (mode, notes) = (beginning.mode, beginning.notes.into_iter().map(Arc::new));
    Arc::make_mut(&mut spec).mode = mode;
    ports.approver.get_or_insert_with(|| Arc::new(ThreadDecides));
    let mut set = ports.set();
    (set.session, set.steering, set.approver, set.listeners) = (true, true, true, true);
    // What the journal holds is enough.
    set.checkpoints = false;
    let stored = loaded.messages.len();
    let view = ViewState { plan: loaded.plan, ..ViewState::default() };
    let log = loaded.messages.into_iter().chain(input.history.iter().cloned()).collect();
    let mut own = origin.clone();
    if let Begin::Compact { .. } = input.begin {
        // Its events belong to no run.
        own.run = None;
    }
    let fresh = Run::new(spec, own, log).with_control(control).with_view(view);
    let fresh = fresh.with_stored(stored).with_ports(set);
    let mut start = Start::resume();
    let machine = match &input.begin {
        Begin::Messages { prompt, waiting, agent } => {
            start.prompt = prompt.iter().cloned().chain(notes).collect();
            (start.waiting, start.agent) = (waiting.clone(), agent.clone());
            fresh
        }
        Begin::Resumed { from, prompt, agent } => {
            let ResumeAsk { continuation, resume } = ResumeAsk::clone(from);
            let prompt = prompt.iter().cloned().chain(notes).collect();
            let resumed = continuation.start_with(resume, prompt, &origin, fresh.log());
            start = resumed.map_err(|error| error.message)?;
            start.agent = agent.clone().or(start.agent);
            fresh
        }
        Begin::Compact { .. } => fresh,
        Begin::Parked => {
            return Err(format!("the thread does not know where run `{}` is parked", input.run()));
        }
        Begin::Saved { version, messages, .. } => {
            let state = Json::parse(saved.unwrap_or_default()).map_err(|error| error.to_string())?;
            let saved = Checkpoint::new(input.run(), input.at, *version, *messages, Arc::new(state));
            let resumed = RunResume::read(&saved).and_then(|saved| saved.onto(fresh));
            resumed.map_err(|error| error.message)?
        }
    };
    let start = start.with_open_calls(loaded.open_calls);
    Ok(Opened { machine, start, ports, delivery, origin, states, mode })
}

/// How the run begins, and its states then. One that rolled over, and one that works for a call, started before; for a compaction
/// nothing starts.
fn begun(
    ports: &Ports,
    origin: &Origin,
    input: &DriveInput,
    configured: StopMode,
) -> (RunBeginning, Option<Json>) {
    let mut beginning = RunBeginning::new(input.mode.unwrap_or(configured));
    let is_run = !matches!(input.begin, Begin::Compact { .. });
    if !is_run || input.state().is_some() || input.delegation.is_some() {
        return (beginning, input.states.clone());
    }
    let changed = States::begun(ports, origin, input.states.as_ref(), &mut beginning).changed();
    (beginning, merged(input.states.clone(), changed.as_ref()))
}

/// The approver of agents that have none.
struct ThreadDecides;

impl Approver for ThreadDecides {
    async fn decide(&self, _: ApprovalAsk) -> Decision {
        Decision::Later
    }
}
