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
//! replayed run asks with the same ids. The adapters put no key into a request or an answer; what a prompt, a
//! tool or an endpoint repeats of one is written as `[key]`, when the recorder was told of it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_record::traffic::{Recorder, Replay};
//! use harness_core::message::{AssistantMessage, Message};
//! use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest, PreparedAgent};
//! use harness_core::transcript::{Transcript, View};
//!
//! struct Live;
//!
//! impl Model for Live {
//!     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
//!         Ok(AssistantMessage::text("4 °C"))
//!     }
//! }
//!
//! struct Silent;
//!
//! impl Deltas for Silent {
//!     fn part(&self, _: DeltaPart) {}
//! }
//!
//! fn question(text: &str) -> ModelRequest {
//!     let log: Transcript = [Arc::new(Message::user(text))].into_iter().collect();
//!     ModelRequest::new(View::whole(log.prefix()), Arc::new(PreparedAgent::new("main", "Be brief.", [])))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("run.jsonl");
//! let recorder = Recorder::create(Live, &path)?;
//! let said = recorder.step(question("How cold is Oslo?"), &Silent).await?;
//!
//! let replay = Replay::open(&path)?;
//! let fault = replay.step(question("How cold is Rome?"), &Silent).await.unwrap_err();
//! assert!(fault.message.contains("at messages[0].content[0].text"));
//! assert_eq!(replay.step(question("How cold is Oslo?"), &Silent).await?, said);
//! replay.finish()?;
//! # Ok(())
//! # }
//! ```

mod canonical;
mod difference;
mod format;
mod recorder;
mod redaction;
mod replay;

pub use format::RECORDING_VERSION;
pub use recorder::Recorder;
pub use replay::Replay;

/// The digest of everything that a model can see of a request: `sha256:` and 64 hexadecimal digits. Equal requests of
/// two runs have equal digests.
///
/// # Errors
/// When the request has no JSON form.
pub fn request_digest(request: &harness_core::port::ModelRequest) -> Result<String, serde_json::Error> {
    canonical::canonical(request).map(|canonical| canonical::digest(&canonical))
}
