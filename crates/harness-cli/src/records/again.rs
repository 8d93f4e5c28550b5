//! Runs a recorded run again.

use std::path::PathBuf;
use std::sync::Arc;

use harness::core::message::Message;
use harness::core::port::{Clock, DynModel, Entry, EntryHead};
use harness::core::turn::OnToolFailure;
use harness::descriptor::{Map, Value};
use harness::record::{
    AnswersFrom, InputMode, InputSource, RecordedApprover, RecordedModel, ReplayInput, ReplayMode,
    ReplayStats, ReplayTools, RunRecord,
};
use harness::runtime::{Prompt, RuntimeError};
use harness::session::MemorySession;
use harness::system::SystemClock;
use harness::{BoundGraph, Harness};

use super::recording::{files, recording};
use crate::args::{ContextArg, LiveArgs, RunRecordArgs};
use crate::bind;
use crate::descriptor;
use crate::error::CliError;
use crate::model;
use crate::run::context;
use crate::secrets;

/// Options of a repeated run.
pub(super) struct How<'a> {
    pub(super) descriptor: Option<PathBuf>,
    pub(super) registry: Option<PathBuf>,
    pub(super) mode: ReplayMode,
    pub(super) input: InputMode,
    pub(super) answers: AnswersFrom,
    pub(super) live: &'a LiveArgs,
    pub(super) context: &'a [ContextArg],
    pub(super) recorded: &'a RunRecordArgs,
}

/// Result of a repeated run.
pub(super) struct Again {
    pub(super) record: Arc<RunRecord>,
    pub(super) stats: ReplayStats,
    pub(super) source: InputSource,
    pub(super) record_failed: Option<String>,
}

/// Runs the record again, with the descriptor that is given or that it names.
pub(super) async fn again(record: &RunRecord, how: How<'_>) -> Result<Again, CliError> {
    let named = files(record);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (descriptor, registry) = match how.descriptor {
        Some(named) => (descriptor::at(&named)?, how.registry),
        None => (named.descriptor.ok_or(CliError::NoDescriptor)?, how.registry.or(named.registry)),
    };
    let bound = bind::bind(&descriptor, registry.as_deref(), &clock)?;
    let input = ReplayInput::of(record, how.input);
    let model: Arc<dyn DynModel> = match how.answers {
        AnswersFrom::Live => {
            let args = how.live.model_args();
            model::choose(&args, Some(&bound.graph), bound.registry.as_ref(), &clock)?.model
        }
        // Recorded, and whatever a later version adds.
        AnswersFrom::Recorded | _ => Arc::new(RecordedModel::new(record)),
    };
    let (send, receive) = std::sync::mpsc::channel();
    let (recorded, mode) = (record.clone(), how.mode);
    let recording = recording(how.recorded, &descriptor, registry.as_deref());
    let context = overlaid(record, how.context, &bound.graph)?;
    let harness = Harness::new(model)
        .redactor(secrets::redactor())
        .graph(bound.graph)
        .context(context)
        .session(remembering(&input.history, clock.as_ref())?)
        .approver(RecordedApprover::new(record))
        .wrap_tools(move |inner| {
            let tools = ReplayTools::new(inner, &recorded, mode);
            let _ = send.send(tools.clone());
            tools
        })
        .spec(|spec| {
            if mode == ReplayMode::Strict {
                spec.turn.on_tool_failure = OnToolFailure::EndOnFault;
            }
        })
        .clock(clock)
        .record(recording)
        .build()?;
    let report =
        harness.prompt(Prompt::new(input.prompt.iter().map(|message| Message::clone(message)))).await?;
    let stats = receive.try_recv().map(|tools: ReplayTools| tools.stats()).unwrap_or_default();
    let record = report.record.ok_or(CliError::NoRecord)?;
    Ok(Again {
        record,
        stats,
        source: input.source,
        record_failed: report.record_failed.as_deref().map(str::to_owned),
    })
}

/// The recorded context, overridden by values of the command line. Recorded values that the descriptor no longer
/// declares are omitted.
fn overlaid(record: &RunRecord, args: &[ContextArg], bound: &BoundGraph) -> Result<Map, CliError> {
    let recorded = record.context_snapshot.as_ref().and_then(|context| context.to::<Value>().ok());
    let recorded = if let Some(Value::Map(recorded)) = recorded { recorded } else { Map::new() };
    let mut all = bound.graph().declared_values(recorded);
    context::overlay(&mut all, context::overrides(args)?);
    Ok(all)
}

/// A session that holds the earlier conversation.
fn remembering(history: &[Arc<Message>], clock: &dyn Clock) -> Result<MemorySession, CliError> {
    let session = MemorySession::new();
    let head = EntryHead::new(clock.now(), None, 0, None);
    let entries: Vec<Entry<'_>> = history.iter().map(Entry::Message).collect();
    session.append_blocking(&head, &entries).map_err(RuntimeError::from)?;
    Ok(session)
}
