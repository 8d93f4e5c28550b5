//! Records of runs, and recordings of model traffic.
//!
//! A run record is one JSON document with input, calls, decisions, usage and end of a run. It is a *fold over events*:
//! [`RecordFold`] makes a [`RunRecord`] from live or stored events alike.
//!
//! | task | items |
//! |---|---|
//! | record a run | [`Recording`], [`RecordFold`], [`RecordOptions`], [`RecordSink`], [`FileSink`], [`FolderSink`] |
//! | see recent runs and those in progress | [`RecentRuns`] |
//! | read the records of a thread | [`RecordSource`], [`FolderSource`] |
//! | redact secrets | [`Redaction`], [`Redactor`]; fails closed |
//! | identify the configuration | [`Candidate`] |
//! | compare two records | [`compare_records`], [`extract_tool_calls`] |
//! | replay with recorded tool results and answers | [`ReplayTools`], [`RecordedModel`], [`RecordedApprover`], [`ReplayInput`] |
//! | run a regression suite | [`Suite`], [`run_suite`] |
//! | derive events for auditors | [`governance_events`] |
//! | show a record | [`render_html`], [`render_text`] |
//! | record and replay model traffic | [`traffic`] |
//!
//! Records and recordings share the form of a request, its hash ([`RequestFingerprint`]) and [`Difference`]. The crate
//! has no stores: a [`RecordSink`] receives the records.
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
mod difference;
mod earlier;
mod entries;
mod error;
mod fold;
mod governance;
mod inspect;
mod model;
mod prompts;
mod recent;
mod recording;
mod redact;
mod regress;
mod replay;
mod request;
mod run_record;
mod scrub;
mod sink;
mod source;
mod subagents;
mod suite;
pub mod traffic;

pub use approver::RecordedApprover;
pub use calls::{ExtractedCall, extract_calls_of, extract_tool_calls};
pub use candidate::Candidate;
pub use compare::{CompareOptions, Comparison, Metrics, Section, Summary, compare_records};
pub use difference::{Difference, DifferenceKind};
pub use entries::{
    ApprovalEntry, ControlEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, ModelCallEntry,
    Note, PolicyDecision, PromptSnapshot, RequestFingerprint, Resource, StopJudgement, ToolCallEntry,
};
pub use error::{RecordError, RecordFile};
pub use fold::{RecordFold, RecordOptions, RunStart};
pub use governance::{GovernanceEvent, GovernancePolicy, Severity, Subject, Trace, governance_events};
pub use inspect::{
    TRACE_SCRIPT, TRACE_STYLE, render_comparison_html, render_html, render_runs_html, render_text,
};
pub use model::RecordedModel;
pub use prompts::{Offer, OfferedTool, PromptRequest, Prompts, SeenMessage, SeenRequest, ViewPart};
pub use recent::RecentRuns;
pub use recording::{Recorded, Recording, RunRecorder};
pub use redact::{RedactError, Redaction, Redactor};
pub use regress::{
    Case, CaseReport, CaseRunner, CaseStatus, Finding, FindingSeverity, Judge, JudgeAsk, JudgeVerdict,
    NoJudge, Signals, SuiteReport, Totals, Verdict, run_suite,
};
pub use replay::{InputMode, InputSource, ReplayInput, ReplayMode, ReplayStats, ReplayTools};
pub use run_record::{RECORD_KIND, RECORD_VERSION, RedactionNote, RunRecord, RunStatus};
pub use sink::{DynRecordSink, FileSink, FolderSink, RecordSink};
pub use source::{DynRecordSource, FolderSource, RecordSource, ThreadRecords};
pub use subagents::{SubagentRecorder, SubagentRun};
pub use suite::{AnswersFrom, CaseSpec, Expectation, Suite};
