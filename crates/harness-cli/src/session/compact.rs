//! `harness session compact`.

use std::fmt::Write as _;
use std::sync::Arc;

use harness::core::message::AssistantMessage;
use harness::core::port::{
    Clock, CompactionNote, Deltas, DynModel, EntryHead, Model, ModelFault, ModelFaultCode, ModelRequest,
    Session as _,
};
use harness::descriptor::CompactionSetting;
use harness::memory::compact::{ContextCompactor, ModelSummarizer, SummaryModel};
use harness::runtime::RuntimeError;
use harness::session::FileSession;
use harness::system::SystemClock;
use harness::tools::Registry;
use harness::{Harness, compaction_policy};
use serde::Serialize;

use super::options;
use crate::args::{CompactArgs, DEFAULT_WINDOW};
use crate::error::CliError;
use crate::exit::Exit;
use crate::model;
use crate::output;
use crate::run::{block_on, session::registry_of};
use crate::secrets;

/// Placeholder for compaction without a model; each step fails.
struct NoModel;

impl Model for NoModel {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        Err(ModelFault::new(ModelFaultCode::Configuration, "no model given"))
    }
}

/// The result in JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    compacted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a CompactionNote>,
    /// Bytes of the file before and after, when it was written anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
}

struct Done {
    note: Option<Arc<CompactionNote>>,
    bytes: Option<[u64; 2]>,
}

/// Compacts a session permanently. Its file keeps all entries unless the user requests their removal.
pub(super) fn compact(args: &CompactArgs) -> Result<Exit, CliError> {
    let done = block_on(compact_here(args))?;
    if args.json {
        let told =
            JsonReport { compacted: done.note.is_some(), note: done.note.as_deref(), bytes: done.bytes };
        return output::print_json(&told, Exit::Completed);
    }
    output::print(&text(&done), Exit::Completed)
}

async fn compact_here(args: &CompactArgs) -> Result<Done, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let session = FileSession::open(&args.session, options().create(false))?;
    let asked = args.model.model.is_some() || args.model.replay.is_some();
    let registry = if asked { registry(args)? } else { None };
    let source = asked.then(|| model::choose(&args.model, None, registry.as_ref(), &clock)).transpose()?;
    let declared = source.as_ref().and_then(|source| source.window);
    let window = args.window.or(declared).unwrap_or(DEFAULT_WINDOW);
    let model: Arc<dyn DynModel> = source.map_or_else(|| Arc::new(NoModel) as _, |source| source.model);
    let mut compactor = ContextCompactor::new(compaction_policy(CompactionSetting::new(args.how, window)));
    if asked {
        let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(&model), window));
        compactor = compactor.with_summarizer(summarizer);
    }
    let harness = Harness::new(model)
        .redactor(secrets::redactor())
        .session(session.clone())
        .compactor(compactor)
        // None of its agents is asked.
        .any_descriptor()
        .clock(Arc::clone(&clock))
        .build()?;
    let before = session.bytes()?;
    let note = harness.thread().compact(args.keep.clone()).await?;
    if !args.forget {
        return Ok(Done { note, bytes: None });
    }
    let messages = session.load().await.map_err(RuntimeError::from)?.messages;
    let head = EntryHead::new(clock.now(), None, 0, None);
    session.replace(&head, &messages).await.map_err(RuntimeError::from)?;
    Ok(Done { note, bytes: Some([before, session.bytes()?]) })
}

/// Registry file whose models `--model` may name: the given one, or that of the run that started the session.
fn registry(args: &CompactArgs) -> Result<Option<Registry>, CliError> {
    let named = args.registry.clone();
    let path = named.map_or_else(|| registry_of(&args.session), |path| Ok(Some(path)))?;
    path.map(|path| Registry::load(path).map_err(CliError::from)).transpose()
}

fn text(done: &Done) -> String {
    let mut text = done.note.as_deref().map_or_else(|| "nothing to compact".to_owned(), shorter);
    match (done.bytes, &done.note) {
        (Some([before, after]), _) => {
            let _ = write!(text, "; removed everything else from the file: {before} → {after} bytes");
        }
        (None, Some(_)) => text += "; the file keeps the earlier messages (--forget removes them)",
        (None, None) => text += "; session unchanged",
    }
    text + "\n"
}

fn shorter(note: &CompactionNote) -> String {
    let mut text = format!("compacted the session: {} → {} tokens", note.tokens_before, note.tokens_after);
    let actions: Vec<_> = note.actions.iter().map(|(action, times)| format!("{action} {times}")).collect();
    if !actions.is_empty() {
        let _ = write!(text, " ({})", actions.join(", "));
    }
    text
}
