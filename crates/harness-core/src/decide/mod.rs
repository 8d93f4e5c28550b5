//! Who may say that something does not happen, and how.
//!
//! A [`Gate`] is asked about a tool call or a handoff before it runs: it allows, rewrites, holds, denies or halts.
//! A [`Check`] is asked about a prompt before it is in the transcript, about an answer before it counts, about the end
//! of a turn before its run ends, and about results and outputs of no use before the turn goes on: it accepts, amends,
//! waives, sends the model back, asks the user, or refuses. Code that only watches is no check, but an
//! [`Observer`](crate::event::Observer) of events.
//! Both stand with the ports of a run inside a [`Guarded`], which gives them a name, a time, what their failure means,
//! and the points at which they are asked. They are asked in the order in which they were given; whatever they decide
//! is told as one event, [`Decided`](crate::event::EventKind::Decided): by which, about what, with which verdict, on
//! what facts, how long it took, and what went wrong.
//!
//! Policies, approvals by rule and closures are ready-made gates ([`gate`]), guardrails and stop hooks are checks
//! ([`check`]).

pub mod check;
mod cx;
mod facts;
pub mod gate;
mod guarded;
pub mod policy;

pub use check::{Check, CheckDecision, CheckVerdict, DynCheck, Subject};
pub use cx::DecideCx;
pub use facts::{DynFactSource, FactSource};
pub use gate::{DynGate, Gate, GateDecision, GateVerdict};
pub use guarded::{Answered, Guard, Guarded, OnError, Point, Points};
