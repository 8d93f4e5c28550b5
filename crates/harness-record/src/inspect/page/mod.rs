//! Trace pages: one run, a list of runs, or two runs side by side.

mod compare;
mod control;
mod decisions;
mod facts;
mod frame;
mod markdown;
mod request;
mod runs;
mod settings;
mod spans;
mod story;
mod waterfall;

use maud::{Markup, html};

use super::timeline::{Tone, outcome_of, tone_of, why};
use super::write::{SafeText, line};
use crate::run_record::RunRecord;

pub use compare::render_comparison_html;
pub use frame::{TRACE_SCRIPT, TRACE_STYLE};
pub use runs::render_runs_html;

/// Maximum characters of a title.
const TITLE: usize = 160;

/// Renders a record as a trace page: one HTML document that works offline.
///
/// It shows a waterfall of model calls, tool calls and waits for approval; each request with what the model received,
/// its answer, calls, decisions with their facts, usage and cost; work and contract over time; and the reason of the
/// end. Its script adds search, collapsing, keyboard control and a theme switch; without scripts the page is complete.
/// A content security policy forbids everything else. Markdown of models is rendered without HTML and images; other
/// untrusted text is escaped. Each text is cut at 20,000 characters, and a message is shown in full once.
pub fn render_html(record: &RunRecord) -> String {
    let run = RunPage { record, prefix: String::new() };
    let title = format!("Run {}", line(&record.run_id));
    frame::page(&title, &html! { (run.head()) (frame::tools()) (run.body()) })
}

/// A run on a page.
#[derive(Clone, Debug)]
pub(super) struct RunPage<'a> {
    pub(super) record: &'a RunRecord,
    /// Start of the ids of its elements, different for each run of a page.
    pub(super) prefix: String,
}

impl<'a> RunPage<'a> {
    /// Page of a sub-agent at this position in the record.
    fn subagent(&self, at: usize, record: &'a RunRecord) -> Self {
        Self { record, prefix: format!("{}sub-{}-", self.prefix, at.saturating_add(1)) }
    }
}

impl RunPage<'_> {
    /// Id of the element of an event.
    pub(super) fn anchor(&self, seq: u64) -> String {
        format!("{}span-{seq}", self.prefix)
    }

    /// Question, reason of the end, answer and facts.
    pub(super) fn head(&self) -> Markup {
        let record = self.record;
        let (title, more) = title_of(record);
        html! {
            div.row {
                (ending(record))
                span.soft.small { (SafeText(&record.run_id)) " · " (SafeText(&record.started_at)) }
            }
            h1.text { (SafeText(&title)) (more) }
            (self.answer())
            (facts::facts(record))
        }
    }

    fn answer(&self) -> Markup {
        let record = self.record;
        html! {
            div class={ "why " (class(tone_of(record))) } { (SafeText(&why(record))) }
            @if let Some(response) = &record.response { div.card.answer.md { (markdown::markdown(response)) } }
            @if let Some(failed) = &record.redaction.failed {
                div.why.bad { "Redaction failed (" (SafeText(failed)) "): the record has no context and no messages." }
            }
        }
    }

    /// Everything below the head.
    pub(super) fn body(&self) -> Markup {
        html! {
            (self.waterfall())
            (self.control())
            h2 { "Steps" }
            (self.story())
            (self.settings())
        }
    }
}

/// Start of the question, and an ellipsis if there is more.
fn title_of(record: &RunRecord) -> (String, &'static str) {
    let question = if record.question.is_empty() { "(no question)" } else { &record.question };
    let title: String = question.chars().take(TITLE).collect();
    let more = if title.len() < question.len() { "…" } else { "" };
    (title, more)
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

fn badge(tone: Tone, text: &str) -> Markup {
    html! { span class={ "badge " (class(tone)) } { (SafeText(text)) } }
}

/// Outcome of a run.
fn ending(record: &RunRecord) -> Markup {
    badge(tone_of(record), outcome_of(record))
}

fn details(open: bool, summary: &str, text: &str) -> Markup {
    html! { details open[open] { summary { (summary) } pre { (SafeText(text)) } } }
}
