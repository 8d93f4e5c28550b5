//! Work, contract and guidance of a controlled run over time.

use harness_core::{Json, Millis};
use maud::{Markup, html};
use serde::Deserialize;

use super::spans::since;
use super::{RunPage, badge, details};
use crate::entries::ControlEntry;
use crate::inspect::timeline::Tone;
use crate::inspect::write::{SafeText, pretty};

/// Known fields of a report of the control.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Report {
    kind: String,
    decision: Option<Decision>,
    sections: Vec<String>,
    tokens: u64,
    changed: Vec<String>,
    closed: u64,
    total: u64,
    deliverables: Vec<Json>,
}

/// Known fields of the decision at the end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Decision {
    code: String,
    stops: bool,
    turn: u32,
    max_turns: u32,
    contract_verified: Option<bool>,
    work_items_verified: Option<bool>,
}

impl RunPage<'_> {
    /// Reports of the run's control, in order; nothing without one.
    pub(super) fn control(&self) -> Markup {
        let entries = &self.record.control_events;
        if entries.is_empty() {
            return html! {};
        }
        html! {
            h2 { "Contract and work" }
            div.card { ol.reports { @for entry in entries { (self.report(entry)) } } }
        }
    }

    fn report(&self, entry: &ControlEntry) -> Markup {
        let report = entry.event.to::<Report>().unwrap_or_default();
        let asking = self.record.model_calls.iter().find(|call| call.turn == entry.turn);
        html! {
            li {
                span.soft.small.at { "+" (Millis(since(self.record, &entry.timestamp))) }
                div {
                    @match (report.kind.as_str(), &report.decision) {
                        ("work_items_changed", _) => (work(&report)),
                        ("stop_decided", Some(decision)) => {
                            (decided(decision))
                            (details(false, "Facts", &pretty(&entry.event)))
                        },
                        ("guidance_injected", _) => {
                            (badge(Tone::Plain, "guidance"))
                            " " (SafeText(&report.sections.join(", "))) " · about " (report.tokens) " tokens"
                        },
                        ("deliverables_updated", _) => {
                            (badge(Tone::Plain, "deliverables"))
                            " " (report.deliverables.len())
                            (details(false, "List", &pretty(&entry.event)))
                        },
                        _ => {
                            (badge(Tone::Plain, "report"))
                            (details(false, "Content", &pretty(&entry.event)))
                        },
                    }
                }
                @if let Some(call) = asking {
                    a.link.small href={ "#" (self.anchor(call.seq)) } { "request " (entry.turn) }
                }
            }
        }
    }
}

fn work(report: &Report) -> Markup {
    html! {
        (badge(Tone::Plain, "work"))
        " " (report.closed) " of " (report.total) " items closed "
        progress.work max=(report.total.max(1)) value=(report.closed.min(report.total)) aria-label="Closed items" {}
        @if !report.changed.is_empty() {
            div.soft.small { "changed: " (SafeText(&report.changed.join(", "))) }
        }
    }
}

fn decided(decision: &Decision) -> Markup {
    let unmet = [decision.contract_verified, decision.work_items_verified].contains(&Some(false));
    let tone = if decision.stops && !unmet { Tone::Good } else { Tone::Warn };
    let met = |met: bool| if met { (Tone::Good, "met") } else { (Tone::Bad, "not met") };
    html! {
        (badge(tone, &decision.code))
        " end of turn " (decision.turn) " of at most " (decision.max_turns)
        @if decision.stops { ", the run stops" } @else { ", the run continues" }
        @if let Some(verified) = decision.contract_verified {
            @let (tone, word) = met(verified);
            " " (badge(tone, &format!("contract {word}")))
        }
        @if let Some(verified) = decision.work_items_verified {
            @let (tone, word) = if verified { (Tone::Good, "complete") } else { (Tone::Bad, "incomplete") };
            " " (badge(tone, &format!("work {word}")))
        }
    }
}
