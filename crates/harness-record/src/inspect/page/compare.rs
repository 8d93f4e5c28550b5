//! Two runs side by side.

use harness_core::{Json, Millis};
use maud::{Markup, html};

use super::request::Shown;
use super::{RunPage, badge, ending, facts, frame, title_of};
use crate::compare::{CompareOptions, Comparison, Section, compare_records};
use crate::difference::{Difference, DifferenceKind};
use crate::inspect::timeline::{RunTimeline, Step, Tone};
use crate::inspect::write::{SafeText, pretty};
use crate::run_record::RunRecord;

/// Renders two records side by side as one page in the form of [`render_html`](super::render_html): their differences in
/// the sense of [`compare_records`] without the metadata, what changed in configuration and cost, then both runs step by
/// step.
pub fn render_comparison_html(left: &RunRecord, right: &RunRecord) -> String {
    let pages = [left, right].map(|record| RunPage { record, prefix: String::new() });
    let [mut a, mut b] = pages;
    (a.prefix, b.prefix) = ("left-".to_owned(), "right-".to_owned());
    let options = CompareOptions::default().without(Section::Metadata);
    let compared = compare_records(left, right, &options);
    let content = html! {
        h1 { "Two runs side by side" }
        (frame::tools())
        div.pair { (head(&a, "left")) (head(&b, "right")) }
        (figures(left, right))
        (differences(&compared))
        h2 { "Timelines" }
        div.pair { div { (a.waterfall()) } div { (b.waterfall()) } }
        h2 { "Steps" }
        (steps(&a, &b))
    };
    frame::page("Two runs side by side", &content)
}

fn head(page: &RunPage<'_>, side: &str) -> Markup {
    let record = page.record;
    let (title, more) = title_of(record);
    html! {
        section aria-label={ "The " (side) " run" } {
            div.row {
                span.badge { (side) }
                (ending(record))
                span.soft.small { (SafeText(&record.run_id)) " · " (SafeText(&record.started_at)) }
            }
            p.text.question { (SafeText(&title)) (more) }
            (page.answer())
        }
    }
}

/// Figures and identity of both runs in a table.
fn figures(left: &RunRecord, right: &RunRecord) -> Markup {
    let (a, b) = (facts::all(left), facts::all(right));
    let identity = |record: &RunRecord| {
        let candidate = &record.candidate;
        [
            ("descriptor", candidate.descriptor_hash.clone()),
            ("registry", candidate.registry_version.clone()),
            ("policy", candidate.policy_version.clone()),
            ("package", candidate.package_version.clone()),
        ]
        .map(|(name, value)| (name, value.unwrap_or_else(|| "–".to_owned())))
    };
    let rows = a.iter().zip(&b).map(|(a, b)| (a.0, a.1.clone(), b.1.clone()));
    let same_run = identity(left).into_iter().zip(identity(right)).map(|(a, b)| (a.0, a.1, b.1));
    html! {
        h2 { "Figures" }
        div.card.scroll {
            table {
                thead { tr { th scope="col" { "figure" } th scope="col" { "left" } th scope="col" { "right" } } }
                tbody {
                    @for (name, a, b) in rows.chain(same_run) {
                        tr class=[(a != b).then_some("changed")] {
                            th scope="row" { (name) }
                            td.text { (SafeText(&a)) }
                            td.text { (SafeText(&b)) @if a != b { " " span.badge.warn { "different" } } }
                        }
                    }
                }
            }
        }
    }
}

fn differences(compared: &Comparison) -> Markup {
    html! {
        h2 { "Differences" }
        @if compared.equal {
            div.why.good { "Same answer, tool calls, policy decisions and guardrail decisions." }
        } @else {
            div.card.scroll {
                table.differences {
                    thead { tr { th scope="col" { "where" } th scope="col" { "left" } th scope="col" { "right" } } }
                    tbody { @for difference in &compared.differences { (difference_row(difference)) } }
                }
            }
        }
    }
}

fn difference_row(difference: &Difference) -> Markup {
    let tone = match difference.kind {
        DifferenceKind::Mismatch => Tone::Warn,
        DifferenceKind::MissingLeft | DifferenceKind::MissingRight => Tone::Bad,
    };
    let shown = |value: &Option<Json>| match value {
        None => html! { span.soft { "nothing" } },
        Some(value) => {
            let text = value.to::<String>().unwrap_or_else(|_| pretty(value));
            html! { pre { (SafeText(&text)) } }
        }
    };
    html! {
        tr data-row {
            th scope="row" { (badge(tone, &difference.path)) }
            td { (shown(&difference.left)) }
            td { (shown(&difference.right)) }
        }
    }
}

/// The steps of both runs, with equal numbers next to each other.
fn steps(left: &RunPage<'_>, right: &RunPage<'_>) -> Markup {
    let (a, b) = (RunTimeline::of(left.record), RunTimeline::of(right.record));
    let (mut shown_a, mut shown_b) = (Shown::default(), Shown::default());
    let count = a.steps.len().max(b.steps.len());
    html! {
        @for at in 0..count {
            @let (a, b) = (a.steps.get(at), b.steps.get(at));
            div.pair.story-pair data-pair {
                (side(left, a, &mut shown_a))
                (side(right, b, &mut shown_b))
            }
        }
    }
}

fn side<'a>(page: &RunPage<'_>, step: Option<&Step<'a>>, shown: &mut Shown<'a>) -> Markup {
    html! {
        ol.story {
            @match step {
                Some(step) => (page.step(step, shown)),
                None => li.soft.small { "no request here; the run took " (Millis(page.record.elapsed_ms)) },
            }
        }
    }
}
