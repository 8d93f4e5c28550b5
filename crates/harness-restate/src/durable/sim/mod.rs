//! An engine in the process of a test: journals, replays, crashes, on virtual time.
//!
//! It keeps what a real engine keeps (journals, the state of objects, messages) and loses what a process loses. Nothing
//! reads a clock or uses randomness but a seed, so a test that fails fails every time.

mod clock;
mod context;
mod engine;
mod events;
pub(crate) mod feed;
mod storage;
mod world;

pub use clock::SimClock;
pub use engine::{SimClient, SimEngine};
pub use events::SimEvents;
pub use world::{SimFaults, SimReport};
