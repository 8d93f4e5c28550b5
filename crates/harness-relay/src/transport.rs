//! The way to other agents: a port, so that a relay of another make is one implementation away.

use harness_core::Json;

use super::event::RelayEvents;
use super::fault::RelayFault;

/// First event of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// From now on.
    Now,
    /// Everything that the relay still holds after this number; 0 for all of it.
    Seq(u64),
}

/// A message to an agent or a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayMessage {
    /// Recipient: an agent's name, or a channel as `#name`.
    pub to: String,
    /// Name of the sender.
    pub from: String,
    /// Text of the message.
    pub text: String,
    /// The thread that it belongs to.
    pub thread_id: Option<String>,
    /// The workspace, when it is not the relay's own.
    pub workspace_id: Option<String>,
    /// More, for relays that pass it on; none of the brokers known today does.
    pub data: Option<Json>,
}

impl RelayMessage {
    /// A message without thread, workspace and data.
    pub fn new(to: impl Into<String>, from: impl Into<String>, text: impl Into<String>) -> Self {
        let (to, from, text) = (to.into(), from.into(), text.into());
        Self { to, from, text, thread_id: None, workspace_id: None, data: None }
    }
}

/// Receipt for a message that the relay accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayReceipt {
    /// The message's id in events.
    pub event_id: Option<String>,
    /// Delivery state. A delivered message may still be unread.
    pub delivery: Delivery,
}

/// Delivery state of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// The relay does not say.
    #[default]
    Unknown,
    /// So many agents that run beside the relay.
    Local(u64),
    /// None of those; it was handed to the hosted service.
    Published,
}

/// A program to start as an agent of the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpawnAgent {
    /// The agent's name.
    pub name: String,
    /// The program. The relay types messages into its terminal, so it must not be a shell that reads them.
    pub cli: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// First message to it.
    pub task: Option<String>,
    /// The model that it should use.
    pub model: Option<String>,
    /// Working directory. `None` uses that of the relay.
    pub cwd: Option<String>,
    /// Name of a team to join, if any.
    pub team: Option<String>,
    /// The channels that it joins; the relay's own choice when empty.
    pub channels: Vec<String>,
    /// Whether it receives the conventions of the relay's workflows; `None` leaves the choice to the relay.
    pub include_workflow_conventions: Option<bool>,
}

impl SpawnAgent {
    /// A program without arguments and task.
    pub fn new(name: impl Into<String>, cli: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cli: cli.into(),
            args: Vec::new(),
            task: None,
            model: None,
            cwd: None,
            team: None,
            channels: Vec::new(),
            include_workflow_conventions: None,
        }
    }
}

/// Carries messages between agents: what the execution adapter and the bridge need of a relay.
///
/// [`BrokerTransport`](super::BrokerTransport) is the real one. An own one needs three methods; spawning is
/// for relays that can start agents.
///
/// ```
/// use harness_relay::{
///     RelayEvent, RelayEventSender, RelayEvents, RelayFault, RelayMessage, RelayReceipt, RelayTransport,
///     Since,
/// };
/// use std::sync::Mutex;
///
/// /// Every message comes straight back as an event.
/// #[derive(Default)]
/// struct Loopback(Mutex<Vec<RelayEventSender>>);
///
/// impl RelayTransport for Loopback {
///     async fn start(&self) -> Result<(), RelayFault> {
///         Ok(())
///     }
///
///     async fn subscribe(&self, _: Since) -> Result<RelayEvents, RelayFault> {
///         let (sender, events) = RelayEvents::channel(16);
///         sender.send(RelayEvent::caught_up()).await;
///         self.0.lock().map_err(|_| RelayFault::failed("poisoned"))?.push(sender);
///         Ok(events)
///     }
///
///     async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
///         let senders = self.0.lock().map_err(|_| RelayFault::failed("poisoned"))?.clone();
///         for sender in senders {
///             sender.send(RelayEvent::inbound(&message)).await;
///         }
///         Ok(RelayReceipt::default())
///     }
/// }
/// ```
pub trait RelayTransport: Send + Sync {
    /// Makes the relay ready. Called before anything else, and again before each execution: a second call
    /// does nothing.
    fn start(&self) -> impl Future<Output = Result<(), RelayFault>> + Send;

    /// Receives events until the subscription is dropped. Stored events come first, in order, then one
    /// [`CaughtUp`](super::RelayEventKind::CaughtUp), then new events.
    fn subscribe(&self, since: Since) -> impl Future<Output = Result<RelayEvents, RelayFault>> + Send;

    /// Sends a message.
    fn send(&self, message: RelayMessage) -> impl Future<Output = Result<RelayReceipt, RelayFault>> + Send;

    /// The names of the agents that run; none when the relay cannot tell.
    fn agents(&self) -> impl Future<Output = Result<Vec<String>, RelayFault>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Starts an agent.
    fn spawn(&self, agent: SpawnAgent) -> impl Future<Output = Result<(), RelayFault>> + Send {
        let _ = agent;
        async { Err(RelayFault::NoSpawning) }
    }

    /// Ends an agent.
    fn release(&self, name: &str) -> impl Future<Output = Result<(), RelayFault>> + Send {
        let _ = name;
        async { Err(RelayFault::NoSpawning) }
    }

    /// Lets go of the relay, and ends it when it was started here.
    fn shutdown(&self) -> impl Future<Output = Result<(), RelayFault>> + Send {
        async { Ok(()) }
    }
}

harness_core::twin! {
    DynRelayTransport of RelayTransport {
        async fn start_boxed = start() -> Result<(), RelayFault>;
        async fn subscribe_boxed = subscribe(since: Since) -> Result<RelayEvents, RelayFault>;
        async fn send_boxed = send(message: RelayMessage) -> Result<RelayReceipt, RelayFault>;
        async fn agents_boxed = agents() -> Result<Vec<String>, RelayFault>;
        async fn spawn_boxed = spawn(agent: SpawnAgent) -> Result<(), RelayFault>;
        async fn release_boxed = release(name: &'a str) -> Result<(), RelayFault>;
        async fn shutdown_boxed = shutdown() -> Result<(), RelayFault>;
    }
}
