//! Records of runs, and recordings of model traffic.
//!
//! A run record is what one run was asked, did, decided and cost, as one JSON document. It is a *fold over
//! events*: [`RecordFold`] listens to a run and gives a [`RunRecord`] when it is over, and the same events
//! from a file give the same record. It is what runs are compared, replayed, regression-tested, audited and
//! shown by:
//!
//! | task | here |
//! |---|---|
//! | keep a record | [`Recording`], [`RecordFold`], [`RecordOptions`], [`RecordSink`], [`FileSink`] |
//! | keep secrets out of it | [`Redaction`], [`Redactor`]; it fails closed |
//! | what exactly was run | [`Candidate`] |
//! | two records side by side | [`compare_records`], [`extract_tool_calls`] |
//! | run it again with the recorded tool results and answers | [`ReplayTools`], [`RecordedModel`], [`RecordedApprover`], [`ReplayInput`] |
//! | a suite of such runs | [`Suite`], [`run_suite`] |
//! | events for auditors | [`governance_events`] |
//! | a page for people | [`render_html`], [`render_text`] |
//! | every exchange with a model in a file, and answers from it | [`traffic`] |
//!
//! A record also has the exact end, tool calls and model calls with their times, gates, limits and usage. The crate
//! knows no stores: a record is a value, and goes where a [`RecordSink`] takes it.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use harness_core::event::{Event, Fold, Hub};
//! use harness_record::{RecordFold, RecordOptions};
//!
//! let fold = Arc::new(Mutex::new(RecordFold::new(RecordOptions::default())));
//! let mut hub = Hub::default();
//! hub.fold(Arc::clone(&fold)); // give the hub to the driver's ports
//! // … a run …
//! let record = fold.lock().unwrap().record();
//! assert!(record.is_none(), "no run has ended yet");
//! ```

mod approver;
mod build;
mod calls;
mod candidate;
mod compare;
mod entries;
mod error;
mod fingerprint;
mod fold;
mod governance;
mod inspect;
mod model;
mod recording;
mod redact;
mod regress;
mod replay;
mod run_record;
mod scrub;
mod sink;
mod suite;
pub mod traffic;

pub use approver::RecordedApprover;
pub use calls::{ExtractedCall, extract_calls_of, extract_tool_calls};
pub use candidate::Candidate;
pub use compare::{
    CompareOptions, Comparison, Difference, DifferenceKind, Metrics, Section, Summary, compare_records,
};
pub use entries::{
    ApprovalEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, ModelCallEntry, Note,
    PolicyDecision, PromptSnapshot, RequestFingerprint, Resource, StopJudgement, ToolCallEntry,
};
pub use error::{RecordAction, RecordError};
pub use fold::{RecordFold, RecordOptions, RunStart};
pub use governance::{
    GovernanceEvent, GovernanceOptions, GovernancePolicy, Severity, Subject, Trace, governance_events,
};
pub use inspect::{render_html, render_text};
pub use model::RecordedModel;
pub use recording::{Recorded, Recording, RunRecorder};
pub use redact::{RedactError, Redaction, Redactor};
pub use regress::{
    Case, CaseReport, CaseRunner, CaseStatus, Finding, FindingSeverity, Judge, JudgeAsk, JudgeVerdict,
    NoJudge, Signals, SuiteReport, Totals, Verdict, run_suite,
};
pub use replay::{
    InputMode, InputSource, MissingCall, OnMissing, ReplayInput, ReplayMode, ReplayStats, ReplayTools,
};
pub use run_record::{RECORD_KIND, RECORD_VERSION, RedactionNote, RunRecord, RunStatus};
pub use sink::{DynRecordSink, FileSink, RecordSink};
pub use suite::{AnswersFrom, CaseSpec, Expectation, Suite};
