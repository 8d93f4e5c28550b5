//! Work items: what a run has set out to do, and what came of it.
//!
//! A [`WorkLedger`] is plain data with a handful of operations; the tools of harness-tools offer them to a
//! model, and a check of the end asks the ledger whether anything is left. An artifact keeps the role that its item was
//! planned with, a finished revision replaces what it revises, and cleaning never empties an artifact.

mod cleaning;
mod control;
mod delta;
mod item;
mod ledger;

pub use cleaning::{Cleaned, clean_artifact};
pub use control::{AuditFault, AuditReport, FailedAudit};
pub use delta::{ItemChange, LedgerDelta};
pub use item::{Deliverable, DeliverableRef, ItemId, ItemPriority, ItemRole, ItemStatus, WorkItem};
pub use ledger::{NewItem, Stored, WorkFault, WorkLedger, WorkLimits};
