//! A model server on the loopback interface that speaks the four protocols which local agents use.
//!
//! It is no model: what it says follows from what it is asked. Offered a shell tool, it first asks for one
//! harmless command, [`plan::COMMAND`]; given the result, it answers with the line of it that holds the
//! note. Whoever gets that answer has therefore run a tool and sent its result back.
//!
//! [`server`] routes, [`plan`] decides what to say, and each protocol has a module that reads a request of it and
//! writes what was decided: [`anthropic`], [`responses`], [`chat`], [`gemini`].

mod anthropic;
mod chat;
mod gemini;
mod plan;
mod responses;
mod server;
mod sse;

pub(crate) use plan::NOTE;
pub(crate) use server::start;
