//! Work items of an agent as the plan of an editor.

use agent_client_protocol::v1::schema::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus};
use harness::control::work::{ItemPriority, ItemStatus, WorkItem, WorkLedger};

/// Plan with all items of a ledger.
pub(crate) fn of_ledger(ledger: &WorkLedger) -> Plan {
    Plan::new(ledger.items().iter().map(entry).collect())
}

fn entry(item: &WorkItem) -> PlanEntry {
    let status = match item.status {
        ItemStatus::InProgress => PlanEntryStatus::InProgress,
        ItemStatus::Done | ItemStatus::Skipped => PlanEntryStatus::Completed,
        ItemStatus::Pending | _ => PlanEntryStatus::Pending,
    };
    let priority = match item.priority {
        ItemPriority::High => PlanEntryPriority::High,
        ItemPriority::Low => PlanEntryPriority::Low,
        ItemPriority::Medium | _ => PlanEntryPriority::Medium,
    };
    PlanEntry::new(item.title.as_str(), priority, status)
}
