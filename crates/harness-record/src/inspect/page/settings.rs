//! Configuration, context and hashes of a run.

use maud::{Markup, html};

use super::{RunPage, details};
use crate::entries::RequestFingerprint;
use crate::inspect::write::{SafeText, pretty};
use crate::run_record::RunRecord;

impl RunPage<'_> {
    /// Configuration, context and request hashes.
    pub(super) fn settings(&self) -> Markup {
        html! { (candidate(self.record)) (context(self.record)) (requests(self.record)) }
    }
}

/// Identity of the configuration.
fn candidate(record: &RunRecord) -> Markup {
    let candidate = &record.candidate;
    let rows = [
        ("candidate", Some(&candidate.digest)),
        ("descriptor", candidate.descriptor_hash.as_ref()),
        ("registry", candidate.registry_version.as_ref()),
        ("provider", candidate.provider.as_ref()),
        ("model", candidate.model.as_ref()),
        ("policy", candidate.policy_version.as_ref()),
        ("package", candidate.package_version.as_ref()),
    ];
    html! {
        h2 { "Configuration" }
        div.card.scroll {
            table {
                @for (name, value) in rows {
                    tr { th { (name) } td.text { (SafeText(value.map_or("–", String::as_str))) } }
                }
            }
        }
    }
}

fn context(record: &RunRecord) -> Markup {
    if record.context_snapshot.is_none() && record.limits.is_none() && record.metadata.is_none() {
        return html! {};
    }
    let title = if record.context_redacted { "Context (redacted)" } else { "Context" };
    html! {
        h2 { "Context and settings" }
        div.card {
            @if let Some(context) = &record.context_snapshot { (details(true, title, &pretty(context))) }
            @if let Some(limits) = &record.limits { (details(false, "Limits", &pretty(limits))) }
            @if let Some(metadata) = &record.metadata { (details(false, "Metadata", &pretty(metadata))) }
        }
    }
}

fn requests(record: &RunRecord) -> Markup {
    if record.request_fingerprints.is_empty() {
        return html! {};
    }
    let columns = ["#", "agent", "messages", "tools", "request", "prompt", "messages"];
    html! {
        h2 { "Request hashes" }
        div.card.scroll {
            table {
                tr { @for column in columns { th { (column) } } }
                @for request in &record.request_fingerprints {
                    tr { @for cell in cells(request) { td.mono { (SafeText(&cell)) } } }
                }
            }
        }
    }
}

fn cells(request: &RequestFingerprint) -> [String; 7] {
    let short = |hash: &String| hash.get(..10).unwrap_or_default().to_owned();
    [
        request.turn.to_string(),
        request.agent_name.to_string(),
        request.message_count.to_string(),
        request.tool_count.to_string(),
        short(&request.request_hash),
        short(&request.system_prompt_hash),
        short(&request.messages_hash),
    ]
}
