//! Recordings of model traffic: the exchanges of one run, written once and replayed without a model.
//!
//! A recording is a JSON Lines file:
//!
//! ```text
//! {"kind":"harness.recording","version":1}
//! {"step":1,"digest":"sha256:…","request":{…},"deltas":[…],"answer":{…}}
//! {"step":2,"digest":"sha256:…","request":{…},"deltas":[],"fault":{…}}
//! ```
//!
//! `request` is the *canonical request*: what a model can see of a request (instructions, messages,
//! tools, the agent's model and settings) and nothing that differs between two equal runs (times,
//! durations, ids of ours, usage). `digest` is the SHA-256 of its text. `answer` is the assistant
//! message as it was returned, `fault` the fault in its place. Call ids come from the answers, so a
//! replayed run asks with the same ids. No key is ever part of a request or an answer.

mod canonical;
mod difference;
mod format;
mod recorder;
mod replay;

pub use format::RECORDING_VERSION;
pub use recorder::Recorder;
pub use replay::Replay;
