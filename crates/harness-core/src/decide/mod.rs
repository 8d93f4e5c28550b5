//! Gates and checks: decisions about calls, prompts, answers and ends.
//!
//! A [`Gate`] decides on a tool call or a handoff before it runs: it allows, rewrites, holds, denies or halts. A [`Check`]
//! judges a prompt before it enters the transcript, an answer before it counts, the end of a turn before its run ends, and
//! results and invalid outputs before the turn continues: it accepts, amends, waives, sends the model back, asks the user,
//! or refuses. Code that only watches reads a [`Subscription`](crate::event::Subscription).
//!
//! [`Guarded`] gives either a name, a time limit, a failure mode, and the points at which it is called. They are called in
//! the given order. Each decision is one event, [`Decided`](crate::event::EventKind::Decided).
//!
//! [`gate`] and [`check`] have constructors for policies, approval rules, guardrails, stop hooks and closures.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::decide::{
//!     Answered, DecideCx, DynGate, GateDecision, GateVerdict, Guard, Guarded, OnError, Point, Points, check, gate,
//! };
//! use harness_core::transcript::Transcript;
//! use harness_core::{Cancel, Millis, Origin, Time};
//!
//! let gate: Guarded<dyn DynGate> = gate::func("office-hours", |call, _| match call.call.name.as_str() {
//!     "pay" => GateVerdict::deny("the bank is closed."),
//!     _ => GateVerdict::Allow,
//! })
//! .within(Millis(500))
//! .on_error(OnError::Lenient);
//! assert_eq!(gate.guard().name.as_str(), "office-hours");
//!
//! let gate = gate::needs_approval("large-payments", |call| {
//!     (call.call.name.as_str() == "pay").then(|| "money leaves the account".to_owned())
//! });
//! assert_eq!(gate.guard().points, Points::CALL.and(Points::HANDOFF));
//!
//! let check = check::guardrail("no-secrets", Points::PROMPT.and(Points::ANSWER), |text| {
//!     text.contains("hunter2").then(|| "it contains a password".to_owned())
//! });
//! let guard: &Guard = check.guard();
//! assert!(guard.points.has(Point::Prompt) && !guard.points.has(Point::Call));
//!
//! let check = check::stop_hook("tests-ran", |_end, progress| {
//!     let ran = progress.tool_calls.contains_key(&"run_tests".into());
//!     (!ran).then(|| "Run the tests before you finish.".to_owned())
//! });
//! # let _ = check;
//!
//! // In tests of gates and checks:
//! let cx = DecideCx::new(Transcript::default().prefix(), Arc::new(Origin::default()), Cancel::never(), Time(0));
//! assert!(cx.log.is_empty());
//! let answered: Answered<GateDecision> = GateDecision::from(GateVerdict::Allow).into();
//! assert_eq!(answered.took, Millis(0));
//! ```

pub mod check;
mod cx;
pub mod gate;
mod guarded;
pub mod policy;

pub use check::{Check, CheckDecision, CheckVerdict, DynCheck, Subject};
pub use cx::{DecideCx, DynFactSource, FactSource};
pub use gate::{DynGate, Gate, GateDecision, GateVerdict};
pub use guarded::{Answered, Guard, Guarded, OnError, Point, Points};
