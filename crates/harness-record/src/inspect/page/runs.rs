//! Several runs on one page.

use std::collections::HashSet;

use harness_core::message::Cost;
use harness_core::{Millis, ThreadId};
use maud::{Markup, html};

use super::{RunPage, ending, facts, frame, title_of};
use crate::inspect::timeline::is_running;
use crate::inspect::write::SafeText;
use crate::run_record::RunRecord;

/// Renders several records as one page in the form of [`render_html`](super::render_html): a list of the runs by thread
/// and start, and each run below it, closed until it is opened. A note is above the list, for example about missing runs;
/// text between backticks is code.
pub fn render_runs_html<'a>(records: impl IntoIterator<Item = &'a RunRecord>, note: Option<&str>) -> String {
    let mut sorted: Vec<&RunRecord> = records.into_iter().collect();
    sorted.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let records = sorted.as_slice();
    let threads = threads(records);
    let count = counted(records.len());
    if records.is_empty() {
        return frame::page(
            "No runs",
            &html! { h1 { "No runs" } p.soft { (noted(note.unwrap_or("The list shows a run from its start on."))) } },
        );
    }
    let content = html! {
        h1 { (count) }
        @if let Some(note) = note { p.soft { (noted(note)) } }
        (summary(records))
        (frame::tools())
        div.card.scroll { (list(&threads)) }
        @for page in threads.iter().flat_map(|thread| &thread.pages) { (run(page)) }
    };
    frame::page(&count, &content)
}

/// A note with its code.
fn noted(note: &str) -> Markup {
    html! {
        @for (index, part) in note.split('`').enumerate() {
            @if index % 2 == 1 { code { (SafeText(part)) } } @else { (SafeText(part)) }
        }
    }
}

fn counted(runs: usize) -> String {
    format!("{runs} run{}", if runs == 1 { "" } else { "s" })
}

/// Runs of a thread, or a run without one.
struct ThreadPages<'a> {
    thread: Option<&'a ThreadId>,
    pages: Vec<RunPage<'a>>,
}

/// Threads by the start of their first run.
fn threads<'a>(sorted: &[&'a RunRecord]) -> Vec<ThreadPages<'a>> {
    let (mut threads, mut prefixes) = (Vec::<ThreadPages<'_>>::new(), HashSet::new());
    for record in sorted.iter().copied() {
        let page = RunPage { record, prefix: prefix(record, &mut prefixes) };
        let thread = record.thread_id.as_ref();
        match threads.iter_mut().find(|known| thread.is_some() && known.thread == thread) {
            Some(known) => known.pages.push(page),
            None => threads.push(ThreadPages { thread, pages: vec![page] }),
        }
    }
    threads
}

/// Start of the ids of a run's elements: its id, and a number if another run has the same. It is the same on every page.
fn prefix(record: &RunRecord, known: &mut HashSet<String>) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let run: String = record.run_id.chars().filter(plain).collect();
    let numbered = (2..).map(|number| format!("{run}-{number}-"));
    let mut prefixes = std::iter::once(format!("{run}-")).chain(numbered);
    prefixes.find(|prefix| known.insert(prefix.clone())).unwrap_or_default()
}

/// Totals of all runs.
fn summary(records: &[&RunRecord]) -> Markup {
    let sum =
        |of: fn(&RunRecord) -> u64| records.iter().map(|record| of(record)).fold(0, u64::saturating_add);
    let costs: Vec<Cost> = records.iter().filter_map(|record| record.usage.cost).collect();
    let cost = costs.iter().fold(Cost::default(), |sum, cost| sum.plus(*cost));
    let completed = sum(|record| u64::from(record.error_name.is_none()));
    let figures = [
        ("without an error", format!("{completed} of {}", records.len())),
        ("time of all", Millis(sum(|record| record.elapsed_ms)).to_string()),
        ("tokens in", facts::grouped(sum(|record| record.usage.input_tokens.unwrap_or_default()))),
        ("tokens out", facts::grouped(sum(|record| record.usage.output_tokens.unwrap_or_default()))),
        ("model calls", sum(|record| u64::from(record.usage.model_calls)).to_string()),
        ("tool calls", sum(|record| u64::from(record.usage.tool_calls)).to_string()),
        ("cost", if costs.is_empty() { "–".to_owned() } else { cost.to_string() }),
    ];
    html! {
        div.facts { @for (name, value) in &figures { div.fact { b { (value) } span { (name) } } } }
    }
}

fn list(threads: &[ThreadPages<'_>]) -> Markup {
    html! {
        table.runs {
            thead { tr { @for name in COLUMNS { th scope="col" { (name) } } } }
            @for ThreadPages { thread, pages } in threads {
                tbody {
                    @if let Some(thread) = thread {
                        tr.thread { th colspan=(COLUMNS.len()) scope="rowgroup" {
                            "Thread " (SafeText(thread.as_str())) span.soft { " · " (counted(pages.len())) }
                        } }
                    }
                    @for page in pages { (row(page)) }
                }
            }
        }
    }
}

const COLUMNS: [&str; 7] = ["started", "end", "question", "time", "calls", "tokens", "cost"];

fn row(page: &RunPage<'_>) -> Markup {
    let record = page.record;
    let usage = &record.usage;
    let (title, more) = title_of(record);
    let tokens =
        usage.input_tokens.unwrap_or_default().saturating_add(usage.output_tokens.unwrap_or_default());
    html! {
        tr data-row {
            td.soft { (SafeText(record.started_at.get(..19).unwrap_or(&record.started_at))) }
            td { (ending(record)) }
            td.wide-cell { a href={ "#" (page.prefix) "top" } { (SafeText(&title)) (more) } }
            td { (Millis(record.elapsed_ms)) }
            td { (usage.model_calls) " + " (usage.tool_calls) }
            td { (facts::grouped(tokens)) }
            td { @if let Some(cost) = usage.cost { (cost) } @else { "–" } }
        }
    }
}

fn run(page: &RunPage<'_>) -> Markup {
    let record = page.record;
    let (title, more) = title_of(record);
    html! {
        details.run id={ (page.prefix) "top" } open[is_running(record)] data-block tabindex="-1" {
            summary {
                (ending(record))
                " " b { (SafeText(&title)) (more) }
                " " span.soft.small { (SafeText(&record.started_at)) " · " (Millis(record.elapsed_ms)) }
            }
            (page.answer())
            (facts::facts(record))
            (page.body())
        }
    }
}
