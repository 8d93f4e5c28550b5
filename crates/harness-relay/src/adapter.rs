//! The adapter: a turn as a message to a worker.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use harness_adapters::execution::{
    ContextStrategy, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionError,
    ExecutionErrorCode, ExecutionPart, ExecutionRequest, ExecutionResult, Negotiated, Support, ToolUse,
    TraceDepth,
};
use harness_core::port::Clock;
use harness_core::{Json, JsonObject, Time};

use super::event::{RelayEvent, RelayEventKind, RelayEvents, RelayInbound};
use super::fault::RelayFault;
use super::ledger::{Ignored, Ledger, RelayCounts};
use super::lifeline::{Lifeline, Registration};
use super::message::{Body, Key, REQUEST_TYPE, ReplyTo, RequestBody};
use super::normalize::normalized;
use super::spawn::{SpawnWorker, ensure_worker};
use super::transport::{Delivery, DynRelayTransport, RelayMessage, RelayReceipt, Since};

/// Worker, sender and time limit of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayAdapterConfig {
    /// The name of the backend in results. Default `agent-relay`.
    pub backend_id: String,
    /// The channel; without a worker's name also whom the request is for. Default
    /// `agent-assistant-execution`.
    pub channel_id: String,
    /// Name of the worker, the only one whose reply is accepted. Default none:
    /// then the first reply is accepted, so name it wherever others can reach the relay.
    pub worker_name: Option<String>,
    /// Our own name, to which the worker answers. Default `agent-assistant`.
    pub orchestrator_name: String,
    /// How long to wait for the reply, counted from the subscription. Default 60 s.
    pub timeout: Duration,
    /// The workspace, when it is not the relay's own.
    pub workspace_id: Option<String>,
    /// Capabilities of the worker. Default: tools, structured calls, standard trace facts.
    pub capabilities: ExecutionCapabilities,
    /// The worker to start when none of its name runs. Default none.
    pub spawn_worker: Option<SpawnWorker>,
    /// How our own name is made known to the relay, unless an agent of that name runs. A relay that hands
    /// messages for names it does not know to its hosted service may lose replies without it. Default: not
    /// at all.
    pub registration: Registration,
    /// Whether the relay is shut down after each execution. Default false.
    pub shutdown_after_execute: bool,
}

impl Default for RelayAdapterConfig {
    fn default() -> Self {
        let mut capabilities = ExecutionCapabilities::none().with_notes([
            "Relay-mediated local execution through a BYOH worker.",
            "The worker owns model/tool iteration and returns a typed ExecutionResult.",
        ]);
        capabilities.tool_use = ToolUse::AdapterMediated;
        capabilities.structured_tool_calls = true;
        capabilities.continuation_support = Support::None;
        capabilities.trace_depth = TraceDepth::Standard;
        capabilities.max_context_strategy = Some(ContextStrategy::Large);
        Self {
            backend_id: "agent-relay".to_owned(),
            channel_id: "agent-assistant-execution".to_owned(),
            worker_name: None,
            orchestrator_name: "agent-assistant".to_owned(),
            timeout: Duration::from_mins(1),
            workspace_id: None,
            capabilities,
            spawn_worker: None,
            registration: Registration::None,
            shutdown_after_execute: false,
        }
    }
}

/// Runs turns through a worker behind a relay.
///
/// The worker's result is passed on with all its fields; `metadata.relay` says who gave it. The end of a
/// worker during the wait is reported at once, not by the timeout. Cancelling ends the wait; the worker
/// continues, because the messages cannot cancel it.
pub struct RelayExecutionAdapter {
    config: RelayAdapterConfig,
    transport: Arc<dyn DynRelayTransport>,
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    /// Keeps the adapter's agent alive.
    lifeline: tokio::sync::Mutex<Lifeline>,
}

impl fmt::Debug for RelayExecutionAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayExecutionAdapter").field("config", &self.config).finish_non_exhaustive()
    }
}

/// One request on its way.
struct Turn<'a> {
    config: &'a RelayAdapterConfig,
    key: Key,
    target: &'a str,
    started: Time,
}

/// How the wait ended.
enum Ended {
    Answered { result: Box<ExecutionResult>, event_id: String, delivery: Delivery },
    Failed { error: ExecutionError, data: Json },
}

impl RelayExecutionAdapter {
    /// An adapter over a transport. The transport may be shared with others.
    pub fn new(
        transport: Arc<dyn DynRelayTransport>,
        clock: Arc<dyn Clock>,
        config: RelayAdapterConfig,
    ) -> Self {
        Self { config, transport, clock, ledger: Ledger::default(), lifeline: tokio::sync::Mutex::default() }
    }

    /// Replies that were received and ignored, since the adapter was made.
    pub fn counts(&self) -> RelayCounts {
        self.ledger.counts()
    }

    async fn run(&self, turn: &Turn<'_>, request: &ExecutionRequest, cx: ExecutionCx<'_>) -> Ended {
        match self.prepare().await {
            Ok(events) => self.ask(turn, request, events, cx).await,
            Err(fault) => failed(&fault, turn.place()),
        }
    }

    /// Makes relay and worker ready and subscribes.
    async fn prepare(&self) -> Result<RelayEvents, RelayFault> {
        let transport = &*self.transport;
        transport.start_boxed().await?;
        self.register().await?;
        ensure_worker(&self.config, transport).await?;
        transport.subscribe_boxed(Since::Now).await
    }

    /// Makes our own name known.
    async fn register(&self) -> Result<(), RelayFault> {
        let (config, name) = (&self.config, &self.config.orchestrator_name);
        if config.registration == Registration::None {
            return Ok(());
        }
        // Held while an agent is started, so that executions at the same time do not start several.
        let mut held = self.lifeline.lock().await;
        if self.transport.agents_boxed().await?.contains(name) {
            return Ok(());
        }
        let (agent, lifeline) = Lifeline::agent(&config.registration, name, &config.channel_id)?;
        *held = lifeline;
        match agent {
            Some(agent) => self.transport.spawn_boxed(agent).await,
            None => Ok(()),
        }
    }

    /// Sends the request and waits for the reply; the subscription exists before the message.
    async fn ask(
        &self,
        turn: &Turn<'_>,
        request: &ExecutionRequest,
        mut events: RelayEvents,
        cx: ExecutionCx<'_>,
    ) -> Ended {
        let _waiting = self.ledger.wait(&turn.key);
        let mut deadline = pin!(tokio::time::sleep(self.config.timeout));
        let message = match turn.message(request) {
            Ok(message) => message,
            Err(fault) => return failed(&RelayFault::failed(fault.to_string()), turn.place()),
        };
        let receipt = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return turn.cancelled(),
            () = &mut deadline => return turn.timed_out(),
            sent = self.transport.send_boxed(message) => match sent {
                Ok(receipt) => receipt,
                Err(fault) => return failed(&fault, turn.route()),
            },
        };
        turn.note_receipt(&receipt, cx);
        loop {
            let event = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return turn.cancelled(),
                () = &mut deadline => return turn.timed_out(),
                event = events.next() => event,
            };
            if let Some(ended) = self.heard(turn, event, receipt.delivery, cx) {
                return ended;
            }
        }
    }

    /// Effect of an event on the turn; `None` when the wait continues.
    fn heard(
        &self,
        turn: &Turn<'_>,
        event: RelayEvent,
        delivery: Delivery,
        cx: ExecutionCx<'_>,
    ) -> Option<Ended> {
        match event.kind {
            RelayEventKind::Inbound(inbound) => match self.judge(turn, &inbound)? {
                Ok(result) => {
                    self.ledger.taken(&inbound.event_id);
                    Some(Ended::Answered { result: Box::new(result), event_id: inbound.event_id, delivery })
                }
                Err(ignored) => {
                    note_ignored(&inbound, ignored, cx);
                    None
                }
            },
            RelayEventKind::AgentGone { name, how } if self.config.worker_name.as_ref() == Some(&name) => {
                let reason = format!("The Relay worker \"{name}\" ended before it answered: {how}.");
                Some(failed(&RelayFault::failed(reason), turn.place()))
            }
            RelayEventKind::Closed { reason } => Some(failed(&RelayFault::Closed { reason }, turn.place())),
            RelayEventKind::Gap { requested, oldest } => {
                let lost = format!("the relay lost events {}..{oldest}", requested.saturating_add(1));
                cx.sink.part(ExecutionPart::Note(lost));
                None
            }
            RelayEventKind::AgentGone { .. }
            | RelayEventKind::CaughtUp
            | RelayEventKind::Reconnected
            | RelayEventKind::Other(_) => None,
        }
    }

    /// Whether a message is the reply; `None` for other kinds of messages.
    fn judge(&self, turn: &Turn<'_>, inbound: &RelayInbound) -> Option<Result<ExecutionResult, Ignored>> {
        let Body::Reply { key, result } = Body::read(&inbound.body) else { return None };
        let id = &inbound.event_id;
        if key != turn.key {
            return Some(Err(self.ledger.judge(&key, false, id)));
        }
        if self.config.worker_name.as_ref().is_some_and(|worker| *worker != inbound.from)
            || !turn.is_for_us(inbound.target.as_deref())
        {
            return Some(Err(self.ledger.foreign(id)));
        }
        let result = result.and_then(|result| normalized(&result));
        Some(result.ok_or_else(|| self.ledger.judge(&key, true, id)))
    }
}

impl Turn<'_> {
    fn message(&self, request: &ExecutionRequest) -> Result<RelayMessage, serde_json::Error> {
        let config = self.config;
        let body = RequestBody {
            kind: REQUEST_TYPE,
            turn_id: &self.key.turn,
            thread_id: &self.key.thread,
            request,
            reply_to: ReplyTo { agent_id: &config.orchestrator_name, channel_id: &config.channel_id },
            sent_at: self.started.iso(),
        };
        let text = serde_json::to_string(&body)?;
        let mut message = RelayMessage::new(self.target, config.orchestrator_name.clone(), text);
        message.thread_id = Some(self.key.thread.clone());
        message.workspace_id.clone_from(&config.workspace_id);
        let data = [
            ("type", Json::string(REQUEST_TYPE)),
            ("turnId", Json::string(&self.key.turn)),
            ("threadId", Json::string(&self.key.thread)),
        ];
        message.data = Some(data.into_iter().collect::<JsonObject>().json());
        Ok(message)
    }

    /// Whether a reply is addressed to us or to our channel (W45). One without a target is accepted.
    fn is_for_us(&self, target: Option<&str>) -> bool {
        let Some(target) = target else { return true };
        let ours = |name: &str, sign: char| target == name || target.strip_prefix(sign) == Some(name);
        ours(&self.config.orchestrator_name, '@') || ours(self.config.channel_id.trim_start_matches('#'), '#')
    }

    fn route(&self) -> Json {
        self.facts([]).json()
    }

    fn place(&self) -> Json {
        self.facts([("threadId", Json::string(&self.key.thread))]).json()
    }

    fn facts<const N: usize>(&self, more: [(&'static str, Json); N]) -> JsonObject {
        let route =
            [("channelId", Json::string(&self.config.channel_id)), ("target", Json::string(self.target))];
        route.into_iter().chain(more).collect()
    }

    fn timed_out(&self) -> Ended {
        let waited = self.config.timeout.as_millis();
        let message = format!("Timed out waiting for Relay execution result after {waited}ms.");
        let error = ExecutionError::new(ExecutionErrorCode::Timeout, message).retryable(true);
        Ended::Failed { error: error.with_metadata(Some(self.place())), data: self.place() }
    }

    fn cancelled(&self) -> Ended {
        let message = "The execution was cancelled before the Relay worker answered.";
        let error = ExecutionError::new(ExecutionErrorCode::Other, message).retryable(true);
        Ended::Failed { error, data: self.place() }
    }

    /// A message that no local agent received may be lost (W51).
    fn note_receipt(&self, receipt: &RelayReceipt, cx: ExecutionCx<'_>) {
        if matches!(receipt.delivery, Delivery::Published | Delivery::Local(0)) {
            let target = self.target;
            tracing::warn!(target_agent = target, "no local agent took the request");
            cx.sink.part(ExecutionPart::Note(format!(
                "no agent beside the relay took the request for {target}"
            )));
        }
    }

    /// The worker's metadata with who it was.
    fn metadata(&self, result: &ExecutionResult, delivery: Delivery) -> Json {
        let mut relay = JsonObject::default();
        relay.set("adapterBackendId", Json::string(&self.config.backend_id));
        relay.set("workerBackendId", Json::string(&result.backend_id));
        for (key, value) in self.facts([("threadId", Json::string(&self.key.thread))]).entries() {
            relay.set(key, value.clone());
        }
        if delivery == Delivery::Published {
            relay.set("delivery", Json::string("published"));
        }
        let mut metadata = result.metadata.as_ref().and_then(JsonObject::of).unwrap_or_default();
        metadata.set("relay", relay.json());
        metadata.json()
    }
}

fn failed(fault: &RelayFault, data: Json) -> Ended {
    let error = ExecutionError::new(ExecutionErrorCode::BackendExecutionError, fault.to_string());
    Ended::Failed { error: error.retryable(true), data }
}

fn note_ignored(inbound: &RelayInbound, ignored: Ignored, cx: ExecutionCx<'_>) {
    let what = match ignored {
        Ignored::Elsewhere => return,
        Ignored::Foreign => "belongs to no request of this adapter",
        Ignored::Late => "came after its turn had ended",
        Ignored::Unreadable => "holds no result that can be read",
    };
    tracing::warn!(from = inbound.from, event = inbound.event_id, "a relay reply {what}");
    cx.sink.part(ExecutionPart::Note(format!("a reply from {} {what}", inbound.from)));
}

impl ExecutionAdapter for RelayExecutionAdapter {
    fn backend_id(&self) -> &str {
        &self.config.backend_id
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        self.config.capabilities.clone()
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let attempt = match Negotiated::of(self, &request) {
            Ok(negotiated) => negotiated.start(&*self.clock),
            Err(unsupported) => return *unsupported,
        };
        let config = &self.config;
        let turn = Turn {
            config,
            key: Key { turn: request.turn_id.clone(), thread: request.thread_or_turn().to_owned() },
            target: config.worker_name.as_deref().unwrap_or(&config.channel_id),
            started: attempt.started(),
        };
        let result = match self.run(&turn, &request, cx).await {
            Ended::Failed { error, data } => attempt.failed(error, Some(data)),
            Ended::Answered { mut result, event_id, delivery } => {
                result.metadata = Some(turn.metadata(&result, delivery));
                let facts = turn.facts([("eventId", Json::string(&event_id))]);
                attempt.adopted(*result, Some(facts.json()))
            }
        };
        if config.shutdown_after_execute
            && let Err(fault) = self.transport.shutdown_boxed().await
        {
            tracing::warn!(%fault, "the relay was not shut down");
        }
        result
    }
}
