//! Work items: planned work and its artifacts.
//!
//! A [`WorkLedger`] is plain data with a few operations. The tools of harness-tools offer them to a model, and the
//! control of a run requires complete items. An artifact keeps the planned role of its item, a finished revision
//! replaces the artifact that it revises, and cleaning never empties an artifact.

mod cleaning;
mod control;
mod delta;
mod item;
mod ledger;
#[cfg(test)]
mod tests;

pub use cleaning::{Cleaned, clean_artifact};
pub use control::{AuditFault, AuditReport, FailedAudit};
pub use delta::{ItemChange, LedgerDelta};
pub use item::{Deliverable, DeliverableRef, ItemId, ItemPriority, ItemRole, ItemStatus, WorkItem};
pub use ledger::{NewItem, Stored, WorkFault, WorkLedger, WorkLimits};
