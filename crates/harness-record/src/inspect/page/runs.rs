//! Several runs on one page.

use harness_core::Millis;
use harness_core::message::Cost;
use maud::{Markup, html};

use super::{RunPage, badge, facts, frame, title_of};
use crate::inspect::timeline::tone_of;
use crate::inspect::write::SafeText;
use crate::run_record::RunRecord;

/// Renders several records as one page in the form of [`render_html`](super::render_html): a list of the runs by their
/// start, and each run below it, closed until it is opened.
pub fn render_runs_html(records: &[RunRecord]) -> String {
    let mut sorted: Vec<&RunRecord> = records.iter().collect();
    sorted.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let pages: Vec<RunPage<'_>> =
        (1..).zip(sorted).map(|(at, record)| RunPage { record, prefix: format!("run-{at}-") }).collect();
    let count = format!("{} run{}", pages.len(), if pages.len() == 1 { "" } else { "s" });
    let content = html! {
        h1 { (count) }
        (summary(&pages))
        (frame::tools())
        div.card.scroll { (list(&pages)) }
        @for page in &pages { (run(page)) }
    };
    frame::page(&count, &content)
}

/// Totals of all runs.
fn summary(pages: &[RunPage<'_>]) -> Markup {
    let sum =
        |of: fn(&RunRecord) -> u64| pages.iter().map(|page| of(page.record)).fold(0, u64::saturating_add);
    let costs: Vec<Cost> = pages.iter().filter_map(|page| page.record.usage.cost).collect();
    let cost = costs.iter().fold(Cost::default(), |sum, cost| sum.plus(*cost));
    let completed = sum(|record| u64::from(record.error_name.is_none()));
    let figures = [
        ("without an error", format!("{completed} of {}", pages.len())),
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

fn list(pages: &[RunPage<'_>]) -> Markup {
    html! {
        table.runs {
            thead { tr { @for name in ["started", "end", "question", "time", "calls", "tokens", "cost"] { th scope="col" { (name) } } } }
            tbody { @for page in pages { (row(page)) } }
        }
    }
}

fn row(page: &RunPage<'_>) -> Markup {
    let record = page.record;
    let usage = &record.usage;
    let (title, more) = title_of(record);
    let tokens =
        usage.input_tokens.unwrap_or_default().saturating_add(usage.output_tokens.unwrap_or_default());
    html! {
        tr data-row {
            td.soft { (SafeText(record.started_at.get(..19).unwrap_or(&record.started_at))) }
            td { (badge(tone_of(record), record.outcome.as_str())) }
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
        details.run id={ (page.prefix) "top" } data-block tabindex="-1" {
            summary {
                (badge(tone_of(record), record.outcome.as_str()))
                " " b { (SafeText(&title)) (more) }
                " " span.soft.small { (SafeText(&record.started_at)) " · " (Millis(record.elapsed_ms)) }
            }
            (page.answer())
            (facts::facts(record))
            (page.body())
        }
    }
}
