//! `harness session compact`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::Harness;
use harness::core::Cancel;
use harness::core::message::AssistantMessage;
use harness::core::port::{
    Clock, CompactionNote, Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest,
};
use harness::memory::compact::{LadderCompactor, ModelSummarizer, SummaryModel};
use harness::session::{JsonlSession, OpenOptions};
use harness::system::SystemClock;
use serde::Serialize;

use crate::args::CompactArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::model::{self, Asking};
use crate::output;
use crate::run::block_on;
use crate::run::view::policy;
use crate::secrets;

/// Nobody: a session is made shorter without asking a model.
struct NoModel;

impl Model for NoModel {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        Err(ModelFault::new(ModelFaultCode::Configuration, "no model was given"))
    }
}

/// What was done, for programs.
#[derive(Serialize)]
struct Told<'a> {
    compacted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a CompactionNote>,
}

/// Makes a session shorter for good; its file keeps everything.
pub(super) fn compact(args: &CompactArgs) -> Result<Exit, CliError> {
    let note = block_on(compact_here(args))?;
    if args.json {
        let told = Told { compacted: note.is_some(), note: note.as_deref() };
        return output::print_json(&told, Exit::Completed);
    }
    output::print(&text(note.as_deref()), Exit::Completed)
}

async fn compact_here(args: &CompactArgs) -> Result<Option<Arc<CompactionNote>>, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let session = JsonlSession::open(&args.session, OpenOptions::new().create(false))?;
    let asked = args.model.model.is_some() || args.model.replay.is_some();
    let asking = Asking { graph: None, descriptor: Path::new(""), message: None };
    let source = asked.then(|| model::choose(&args.model, asking, &clock)).transpose()?;
    let model: Arc<dyn DynModel> = source.map_or_else(|| Arc::new(NoModel) as _, |source| source.model);
    let mut compactor = LadderCompactor::new(policy(args.how, args.window));
    if asked {
        let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(&model), args.window));
        compactor = compactor.with_summarizer(summarizer);
    }
    let harness = Harness::new(model)
        .redactor(secrets::redactor())
        .session(session)
        .compactor(compactor)
        .clock(clock)
        .build()?;
    Ok(harness.compact(args.keep.clone(), &Cancel::never()).await?)
}

fn text(note: Option<&CompactionNote>) -> String {
    let Some(note) = note else {
        return "there was nothing to make shorter; the session is as it was\n".to_owned();
    };
    let mut text = format!("{} tokens are {} now", note.tokens_before, note.tokens_after);
    let actions: Vec<_> = note.actions.iter().map(|(action, times)| format!("{action} {times}")).collect();
    if !actions.is_empty() {
        let _ = write!(text, " ({})", actions.join(", "));
    }
    text + "; the file still holds what was there before\n"
}
