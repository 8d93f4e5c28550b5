//! Recordings of model traffic: the exchanges of a run, replayed without a model.
//!
//! A recording is a JSON Lines file:
//!
//! ```text
//! {"kind":"harness.recording","version":2}
//! {"step":1,"digest":"…","request":{…},"deltas":[…],"answer":{…}}
//! {"step":2,"digest":"…","request":{…},"deltas":[],"fault":{…}}
//! ```
//!
//! `request` has the form that [`RequestFingerprint`](crate::RequestFingerprint) describes: what a model can see of a
//! request, without anything that differs between two equal runs. `digest` is the `requestHash` that the run record
//! has for this request. `answer` is the returned assistant message, `fault` the error in its place. Call ids are part
//! of the answers, so a replayed run uses the same ids. Adapters put no key into requests and answers; the recorder
//! redacts the keys it knows as `[key]`.
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
//! assert!(fault.message.contains(r#"messages[0].content: "How cold is Oslo?" → "How cold is Rome?""#));
//! assert_eq!(replay.step(question("How cold is Oslo?"), &Silent).await?, said);
//! replay.finish()?;
//! # Ok(())
//! # }
//! ```

mod format;
mod recorder;
mod redaction;
mod replay;

pub use format::RECORDING_VERSION;
pub use recorder::Recorder;
pub use replay::Replay;

/// Returns the form of a request: everything that a model can see of it, with exact numbers. Equal requests of two
/// runs have equal forms.
///
/// # Errors
/// A request without a JSON form.
pub fn request_form(
    request: &harness_core::port::ModelRequest,
) -> Result<harness_core::Json, serde_json::Error> {
    crate::request::form(request)
}
