//! A relay in memory, and runners that do what a test says.

use std::sync::Arc;

use harness_adapters::{CliInput, CliOutcome, CliRunner};
use harness_core::Cancel;
use harness_relay::{
    Delivery, RelayEvent, RelayEventKind, RelayEventSender, RelayEvents, RelayFault, RelayMessage,
    RelayReceipt, RelayTransport, Since, SpawnAgent,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

/// Keeps all events, tells them to all who listen, and knows its agents.
#[derive(Default)]
pub(crate) struct MemoryRelay {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    events: Vec<RelayEvent>,
    listeners: Vec<RelayEventSender>,
    agents: Vec<SpawnAgent>,
    sent: Vec<RelayMessage>,
    released: Vec<String>,
    refuse: Option<RelayFault>,
}

impl MemoryRelay {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Tells an event to everybody, and keeps it.
    pub(crate) async fn tell(&self, kind: RelayEventKind) {
        let (event, listeners) = {
            let mut state = self.state.lock();
            let mut event = RelayEvent::caught_up();
            (event.seq, event.kind) = (Some(state.events.len() as u64 + 1), kind);
            state.events.push(event.clone());
            state.listeners.retain(|listener| !listener.is_closed());
            (event, state.listeners.clone())
        };
        for listener in listeners {
            listener.send(event.clone()).await;
        }
        self.touch();
    }

    /// An agent ends by itself.
    pub(crate) async fn kill(&self, name: &str) {
        self.state.lock().agents.retain(|agent| agent.name != name);
        self.tell(RelayEventKind::AgentGone {
            name: name.to_owned(),
            how: "agent_exited (signal 9)".to_owned(),
        })
        .await;
    }

    /// Every send fails from now on, or works again.
    pub(crate) fn refuse(&self, fault: Option<RelayFault>) {
        self.state.lock().refuse = fault;
    }

    pub(crate) fn sent(&self) -> Vec<RelayMessage> {
        self.state.lock().sent.clone()
    }

    pub(crate) fn agents(&self) -> Vec<SpawnAgent> {
        self.state.lock().agents.clone()
    }

    pub(crate) fn released(&self) -> Vec<String> {
        self.state.lock().released.clone()
    }

    pub(crate) fn listeners(&self) -> usize {
        self.state.lock().listeners.iter().filter(|listener| !listener.is_closed()).count()
    }

    /// Waits until something holds; it is looked at after every change.
    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changes = self.changed.subscribe();
        while !holds(self) {
            changes.changed().await.unwrap();
        }
    }
}

impl RelayTransport for MemoryRelay {
    async fn start(&self) -> Result<(), RelayFault> {
        Ok(())
    }

    async fn subscribe(&self, since: Since) -> Result<RelayEvents, RelayFault> {
        let (sender, events) = RelayEvents::channel(1024);
        let stored = match since {
            Since::Seq(seq) => {
                self.state.lock().events.get(usize::try_from(seq).unwrap()..).unwrap().to_vec()
            }
            Since::Now | _ => Vec::new(),
        };
        for event in stored {
            sender.send(event).await;
        }
        sender.send(RelayEvent::caught_up()).await;
        self.state.lock().listeners.push(sender);
        self.touch();
        Ok(events)
    }

    async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
        let RelayEventKind::Inbound(mut inbound) = RelayEvent::inbound(&message).kind else {
            panic!("inbound")
        };
        let known = {
            let mut state = self.state.lock();
            if let Some(fault) = state.refuse.clone() {
                return Err(fault);
            }
            inbound.event_id = format!("e{}", state.sent.len() + 1);
            state.sent.push(message.clone());
            state.agents.iter().filter(|agent| agent.name == message.to).count()
        };
        self.tell(RelayEventKind::Inbound(inbound)).await;
        let mut receipt = RelayReceipt::default();
        receipt.delivery = if known > 0 { Delivery::Local(1) } else { Delivery::Published };
        Ok(receipt)
    }

    async fn agents(&self) -> Result<Vec<String>, RelayFault> {
        Ok(self.state.lock().agents.iter().map(|agent| agent.name.clone()).collect())
    }

    async fn spawn(&self, agent: SpawnAgent) -> Result<(), RelayFault> {
        self.state.lock().agents.push(agent);
        self.touch();
        Ok(())
    }

    async fn release(&self, name: &str) -> Result<(), RelayFault> {
        self.state.lock().released.push(name.to_owned());
        self.kill(name).await;
        Ok(())
    }
}

/// Runs each prompt when it is let: `fail …` fails, `panic …` panics, anything else comes back.
pub(crate) struct Gated {
    permits: Semaphore,
    started: watch::Sender<Vec<String>>,
    stopped: watch::Sender<usize>,
}

impl Gated {
    pub(crate) fn open() -> Arc<Self> {
        Self::with(Semaphore::MAX_PERMITS)
    }

    pub(crate) fn closed() -> Arc<Self> {
        Self::with(0)
    }

    fn with(permits: usize) -> Arc<Self> {
        let (started, stopped) = (watch::Sender::default(), watch::Sender::default());
        Arc::new(Self { permits: Semaphore::new(permits), started, stopped })
    }

    /// Lets so many more runs end.
    pub(crate) fn let_end(&self, runs: usize) {
        self.permits.add_permits(runs);
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        self.started.borrow().clone()
    }

    pub(crate) async fn until_started(&self, runs: usize) {
        self.started.subscribe().wait_for(|started| started.len() >= runs).await.unwrap();
    }

    pub(crate) fn stopped(&self) -> usize {
        *self.stopped.borrow()
    }

    async fn cancelled(&self, cancel: &Cancel) {
        cancel.cancelled().await;
        self.stopped.send_modify(|count| *count += 1);
    }
}

impl CliRunner for Gated {
    fn id(&self) -> &'static str {
        "gated"
    }

    async fn run(&self, input: CliInput) -> CliOutcome {
        self.started.send_modify(|started| started.push(input.prompt.clone()));
        let failed =
            |error: &str| CliOutcome::Failed { error: error.to_owned(), stderr: None, exit_code: Some(3) };
        tokio::select! {
            biased;
            () = self.cancelled(&input.cancel) => return failed("stopped"),
            permit = self.permits.acquire() => permit.unwrap().forget(),
        }
        if input.prompt.starts_with("panic") {
            std::panic::resume_unwind(Box::new("kaput"));
        }
        if input.prompt.starts_with("fail") {
            return failed("it failed");
        }
        CliOutcome::Completed { text: format!("echo: {}", input.prompt), metadata: None }
    }
}
