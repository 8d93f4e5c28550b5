//! `harness replay`.

use std::io::Write as _;

use harness::record::{
    AnswersFrom, CompareOptions, Comparison, InputSource, ReplayStats, RunRecord, Section, compare_records,
};
use serde::Serialize;

use super::again::{Again, How, again};
use crate::args::ReplayArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::harmless;
use crate::run::block_on;
use crate::terminal;

/// Replays a record and reports the differences.
pub(crate) fn replay(args: &ReplayArgs) -> Result<Exit, CliError> {
    let record = RunRecord::read(&args.record)?;
    let how = How {
        descriptor: args.descriptor.clone(),
        registry: args.registry.clone(),
        mode: args.mode.into(),
        input: args.input.into(),
        answers: args.model.answers().unwrap_or(AnswersFrom::Recorded),
        live: &args.model,
        context: &args.context,
        recorded: &args.recorded,
    };
    let again = block_on(again(&record, how))?;
    if let Some(failed) = &again.record_failed {
        let _ = writeln!(terminal::messages(), "record of the replay not written: {failed}");
    }
    // The metadata belongs to whoever made the record.
    let options = CompareOptions::default().without(Section::Metadata);
    let compared = compare_records(&record, &again.record, &options);
    let same = compared.equal && record.stop_reason == again.record.stop_reason;
    let exit = if same { Exit::Completed } else { Exit::Failed };
    if args.json {
        return output::print_json(&told(&record, &again, &compared, same), exit);
    }
    output::print_long(&text(args, &record, &again, &compared, same), exit)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonReport<'a> {
    same: bool,
    recorded_run_id: &'a str,
    replayed_run_id: &'a str,
    recorded_stop_reason: &'a str,
    replayed_stop_reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    input_source: InputSource,
    stats: ReplayStats,
    comparison: &'a Comparison,
}

fn told<'a>(
    record: &'a RunRecord,
    again: &'a Again,
    comparison: &'a Comparison,
    same: bool,
) -> JsonReport<'a> {
    JsonReport {
        same,
        recorded_run_id: &record.run_id,
        replayed_run_id: &again.record.run_id,
        recorded_stop_reason: record.stop_reason.as_str(),
        replayed_stop_reason: again.record.stop_reason.as_str(),
        error_message: again.record.error_message.as_deref(),
        input_source: again.source,
        stats: again.stats,
        comparison,
    }
}

fn text(args: &ReplayArgs, record: &RunRecord, again: &Again, compared: &Comparison, same: bool) -> String {
    let new = &again.record;
    let mut lines = vec![format!("{} → {}", record.run_id, new.run_id)];
    if args.mode != crate::args::Mode::Live {
        let ReplayStats {
            recorded_tool_calls,
            replayed_from_record,
            missing_tool_calls,
            live_fallback_calls,
            ..
        } = again.stats;
        lines.push(format!(
            "tools: {recorded_tool_calls} recorded, {replayed_from_record} replayed, \
             {missing_tool_calls} not in it, {live_fallback_calls} of those executed"
        ));
    }
    if record.context_redacted {
        lines.push("the recorded context is redacted; set missing values with --context".to_owned());
    }
    if record.candidate.descriptor_hash != new.candidate.descriptor_hash {
        lines.push("the descriptor has changed".to_owned());
    }
    if record.stop_reason != new.stop_reason {
        let why = new.error_message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("ended {} → {}{why}", record.stop_reason, new.stop_reason));
    }
    lines.extend(compared.differences.iter().map(harness::record::Difference::line));
    lines.push(if same { "no difference".to_owned() } else { "different".to_owned() });
    lines.iter().fold(String::new(), |text, line| text + &harmless(line) + "\n")
}
