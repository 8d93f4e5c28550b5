//! Runs as `tracing` spans: run → turn → model calls and tool calls, with handoffs, approvals, compactions, and
//! sub-agents below the calls that started them. Parallel calls are parallel spans. Names and attributes follow
//! OpenTelemetry's conventions for generative AI (`invoke_agent NAME`, `chat MODEL`, `execute_tool TOOL`, `gen_ai.usage.input_tokens`, …).
//!
//! [`Spans`] derives them from a run's events. Any subscriber of `tracing` can show them; with the feature `otel`,
//! `otlp` sends them to a collector.
//!
//! Spans contain names, ids, numbers, outcomes, stable codes and error messages. They contain messages, arguments and
//! results only with [`SpanOptions::content`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::driver::{Ports, drive};
//! use harness_core::machine::Start;
//! use harness_core::message::{AssistantMessage, Message};
//! use harness_core::testing::{ScriptedModel, VirtualClock};
//! use harness_core::transcript::Transcript;
//! use harness_core::turn::{Turn, TurnSpec};
//! use harness_core::{Cancel, Origin, Time};
//! use harness_telemetry::{SpanOptions, Spans};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let model = ScriptedModel::new([AssistantMessage::text("It is 4.")]);
//! let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
//! ports.hub.fold(Spans::new(SpanOptions::new()));
//! let spec = Arc::new(TurnSpec::default());
//! let mut turn = Turn::new(spec, Origin::default(), Transcript::default());
//! drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("2 + 2?"))).await;
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Names
//!
//! | span | name | attributes |
//! |---|---|---|
//! | run, or a turn without one | `invoke_agent NAME` | `gen_ai.agent.name`, `gen_ai.conversation.id` (the thread, else the session), `harness.run.id`, `harness.outcome`, `harness.stop_reason`, totals |
//! | turn of a run | `turn N` | `harness.turn`, `harness.outcome`, `harness.stop_reason`, its totals |
//! | after a handoff, to the end of the turn | `invoke_agent NAME` | `harness.handoff.from` |
//! | model call | `chat MODEL` | `gen_ai.request.model`, `gen_ai.provider.name`, `gen_ai.response.*`, `gen_ai.usage.*`, `harness.cost`, even for calls that failed or were cut off |
//! | tool call, with its retries | `execute_tool TOOL` | `gen_ai.tool.name`, `gen_ai.tool.call.id`, `harness.tool.status`, `harness.tool.attempts`; `harness.tool.ran` is false when a gate or policy answered |
//! | wait for an approval | `approval` | `gen_ai.tool.call.id`, `harness.approval.decision` |
//! | compaction | `compact` | `harness.compaction.*`, what it used |
//!
//! Totals are `gen_ai.usage.*`, `harness.iterations`, `harness.model_calls`, `harness.tool_calls`,
//! `harness.cost`, `harness.estimated_tokens` for tokens that no provider reported, and, if other parts of the run
//! called models, `harness.usage_by_purpose`: the shares of `answer`, `layer`, `guardrail`, `stop_gate`,
//! `compaction`, `judge` and `child` as JSON. Failed spans have the status `ERROR` and an `error.type`, which is a stable code. Turns that are
//! deferred or await an approval have not failed. Instantaneous events (a gate's verdict, a limit, a retry) are
//! events of the enclosing span at level `DEBUG`. The compaction before a request is reported at its end:
//! `harness.duration_ms` is its duration, and `otlp` moves its start back by that time.

mod content;
mod open;
mod options;
#[cfg(feature = "otel")]
pub mod otlp;
mod parents;
mod spans;
mod work;

pub use open::TARGET;
pub use options::SpanOptions;
pub use spans::Spans;
