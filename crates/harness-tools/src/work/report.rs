//! Results of the work-item tools: lines for the model, data for subscribers.

use std::fmt::Write as _;

use harness_control::work::{AuditReport, ItemStatus, LedgerDelta, WorkFault, WorkItem, WorkLedger};
use harness_core::Json;
use harness_core::tool::ToolOutcome;
use serde::Serialize;

/// How many characters of an artifact a list shows.
const SHOWN: usize = 60;

/// Changes of a ledger.
#[derive(Default)]
pub(super) struct WorkReport {
    lines: Vec<String>,
    changed: Vec<Change>,
    progress: Option<Left>,
}

/// An item that changed, without its artifact.
#[derive(Clone, Debug, Serialize)]
struct Change {
    id: String,
    title: String,
    status: &'static str,
    priority: &'static str,
    artifact_role: &'static str,
    requires_revision: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_bytes: Option<usize>,
}

/// Open items.
#[derive(Clone, Copy, Debug, Serialize)]
struct Left {
    remaining: usize,
    percent: f64,
}

#[derive(Serialize)]
struct Answer<'a> {
    changed: Vec<Change>,
    ledger: &'a LedgerDelta,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    progress: Option<Left>,
}

impl Change {
    fn of(item: &WorkItem) -> Self {
        Self {
            id: item.id.to_string(),
            title: item.title.clone(),
            status: item.status.as_str(),
            priority: item.priority.as_str(),
            artifact_role: item.artifact_role.as_str(),
            requires_revision: item.requires_revision,
            artifact_bytes: (!item.artifact.is_empty()).then_some(item.artifact.len()),
        }
    }
}

impl WorkReport {
    fn say(&mut self, line: String, item: &WorkItem) {
        self.lines.push(line);
        self.changed.push(Change::of(item));
    }

    pub(super) fn added(&mut self, item: &WorkItem) {
        let (role, priority) = (item.artifact_role.as_str(), item.priority.as_str());
        self.say(format!("Added [{}] {} (role: {role}, priority: {priority})", item.id, item.title), item);
    }

    pub(super) fn updated(&mut self, item: &WorkItem) {
        self.say(format!("[{}] is {}.", item.id, item.status.as_str()), item);
    }

    pub(super) fn progress(&mut self, ledger: &WorkLedger) {
        let left = Left { remaining: ledger.incomplete().count(), percent: ledger.percent_complete() };
        let mut line = format!("{} left, {:.0}% complete.", left.remaining, left.percent);
        if left.remaining == 0 {
            line.push_str(" Nothing is left: say that the work is complete.");
        }
        self.lines.push(line);
        self.progress = Some(left);
    }

    pub(super) fn stored(&mut self, item: &WorkItem, removed: usize) {
        let mut line = format!("Stored for [{}] as {}: ", item.id, item.artifact_role.as_str());
        line.push_str(&start_of(&item.artifact, 80));
        if removed > 0 {
            let _ = write!(
                line,
                "\n{removed} line(s) of talk around it were removed: an artifact is the result alone."
            );
        }
        self.say(line, item);
    }

    pub(super) fn flagged(&mut self, item: &WorkItem, revision: &WorkItem) {
        self.say(
            format!("[{}] needs a revision: added [{}] {}.", item.id, revision.id, revision.title),
            item,
        );
        self.changed.push(Change::of(revision));
    }

    /// The answer, with what the change of the ledger was.
    pub(super) fn outcome(self, ledger: &LedgerDelta) -> ToolOutcome {
        let mut outcome = ToolOutcome::text(self.lines.join("\n"));
        outcome.structured =
            Json::of(&Answer { changed: self.changed, ledger, progress: self.progress }).ok();
        outcome
    }
}

/// The items, one line each, with what hangs on them.
pub(super) fn list(ledger: &WorkLedger, only: Option<ItemStatus>) -> ToolOutcome {
    if ledger.is_empty() {
        return ToolOutcome::text("There are no work items yet; add them with work_item_add.");
    }
    let mut text = format!("Work items ({:.0}% complete):", ledger.percent_complete());
    let shown: Vec<_> =
        ledger.items().iter().filter(|item| only.is_none_or(|only| item.status == only)).collect();
    for item in &shown {
        let _ = write!(text, "\n  {item}");
        if let Some(newer) = &item.superseded_by {
            let _ = write!(text, " (replaced by {newer})");
        }
        if !item.notes.is_empty() {
            let _ = write!(text, "\n      Notes: {}", item.notes);
        }
        if !item.artifact.is_empty() {
            let _ = write!(text, "\n      Artifact: {}", start_of(&item.artifact, SHOWN));
        }
    }
    let counts: Vec<_> = ledger.counts().iter().map(|(status, count)| format!("{count} {status}")).collect();
    let _ = write!(text, "\nIn all: {}", counts.join(", "));
    let mut outcome = ToolOutcome::text(text);
    let shown: Vec<_> = shown.into_iter().map(Change::of).collect();
    outcome.structured = Some(serde_json::json!({ "items": shown }).into());
    outcome
}

/// One item with its artifact.
pub(super) fn whole(item: &WorkItem) -> ToolOutcome {
    let mut text = item.to_string();
    if !item.notes.is_empty() {
        let _ = write!(text, "\nNotes: {}", item.notes);
    }
    match item.artifact.as_str() {
        "" => text.push_str("\nIt has no artifact yet."),
        artifact => {
            let _ = write!(text, "\nArtifact ({}):\n{artifact}", item.artifact_role.as_str());
        }
    }
    ToolOutcome::text(text)
}

/// Error text that includes what to do.
pub(super) fn fault(fault: &WorkFault) -> String {
    let hint = if matches!(fault, WorkFault::Audit(_)) {
        format!(". It must look like {}", AuditReport::FORM)
    } else if matches!(fault, WorkFault::Unknown { .. }) {
        "; work_item_list shows what there is".to_owned()
    } else {
        String::new()
    };
    format!("{fault}{hint}")
}

/// All statuses, for a sentence.
pub(super) fn statuses() -> String {
    ItemStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ")
}

/// The first characters, on one line.
fn start_of(text: &str, most: usize) -> String {
    let mut start: String = text.chars().take(most).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        start.push_str("...");
    }
    start
}
