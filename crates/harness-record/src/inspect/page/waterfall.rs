//! Waterfall of a run.

use harness_core::Millis;
use maud::{Markup, html};

use super::spans::{Span, SpanKind};
use super::{RunPage, class};
use crate::inspect::write::SafeText;

impl RunPage<'_> {
    /// Timeline of the run: one row per span, on one axis of time.
    pub(super) fn waterfall(&self) -> Markup {
        let spans = self.spans();
        if spans.is_empty() {
            return html! {};
        }
        let total = |kind| -> u64 {
            let durations = spans.iter().filter(|span| span.kind == kind).map(|span| span.duration);
            durations.fold(0, u64::saturating_add)
        };
        let times = [
            (SpanKind::Model, "model", total(SpanKind::Model)),
            (SpanKind::Tool, "tools", total(SpanKind::Tool)),
            (SpanKind::Wait, "waiting for approval", total(SpanKind::Wait)),
        ];
        let whole = self.record.elapsed_ms.max(1);
        html! {
            h2 { "Timeline" }
            div.card.wf {
                div.legend.small {
                    @for (kind, name, time) in times {
                        @if time > 0 { span { i class=(kind) {} " " (name) " " (Millis(time)) } }
                    }
                    @if spans.iter().any(|span| span.first_token.is_some()) { span { i.first {} " first token" } }
                }
                div.ticks.soft.small aria-hidden="true" {
                    @for part in 0..=4_u64 { span { (Millis(whole.saturating_mul(part) / 4)) } }
                }
                @for span in &spans { (rows(span, whole)) }
            }
        }
    }
}

/// A span, and the sub-agents inside it.
fn rows(span: &Span, whole: u64) -> Markup {
    html! {
        (row(span, whole))
        @for (name, spans) in &span.inside {
            details.inside open {
                summary { "sub-agent " (SafeText(name)) }
                @for span in spans { (rows(span, whole)) }
            }
        }
    }
}

fn row(span: &Span, whole: u64) -> Markup {
    let (left, width) = (share(span.start, whole), share(span.duration, whole));
    // A bar without a width would not be drawn.
    let width = width.min(1_000 - left).max(1);
    let time = Millis(span.duration).to_string();
    let tokens = span.tokens.as_deref().unwrap_or_default();
    let cost = span.cost.map(|cost| cost.to_string()).unwrap_or_default();
    html! {
        a class={ "span " (span.kind) } href={ "#" (span.anchor) } data-row {
            span.name { (SafeText(&span.label)) }
            // Attributes of SVG, because the policy of a page forbids attributes for styles.
            svg.track aria-hidden="true" {
                rect class={ "bar " (class(span.tone)) } x=(percent(left)) width=(percent(width)) height="100%" rx="4" {}
                @if let Some(first) = span.first_token {
                    rect.first x=(percent(share(span.start.saturating_add(first), whole))) width="3" height="100%" {
                        title { "first token after " (Millis(first)) }
                    }
                }
            }
            span.num { (time) }
            span.num.wide { (tokens) }
            span.num.wide { (cost) }
        }
    }
}

/// Share of the whole in thousandths.
fn share(part: u64, whole: u64) -> u64 {
    part.min(whole).saturating_mul(1_000) / whole
}

fn percent(thousandths: u64) -> String {
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}
