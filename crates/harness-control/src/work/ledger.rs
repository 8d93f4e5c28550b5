//! Ledger of work items.

use std::collections::BTreeMap;
use std::fmt;

use harness_core::Time;
use serde::{Deserialize, Serialize};

use super::{
    AuditFault, AuditReport, Deliverable, FailedAudit, ItemId, ItemPriority, ItemRole, ItemStatus, WorkItem,
    clean_artifact,
};

/// Limits of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkLimits {
    /// Maximum number of items. Default 500.
    pub items: usize,
    /// Maximum bytes of a title or of notes. Default 4 KiB.
    pub text: usize,
    /// Maximum bytes of an artifact. Default 1 MiB.
    pub artifact: usize,
    /// Maximum bytes of all artifacts. Default 16 MiB.
    pub artifacts: usize,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self { items: 500, text: 4 << 10, artifact: 1 << 20, artifacts: 16 << 20 }
    }
}

/// Error of a ledger operation, which changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkFault {
    /// The item does not exist.
    #[error("work item [{id}] not found")]
    Unknown {
        /// Unknown id.
        id: ItemId,
    },
    /// A control artifact is not an audit report.
    #[error(transparent)]
    Audit(AuditFault),
    /// The ledger is full.
    #[error("the limit of {most} work items is reached")]
    TooMany {
        /// Maximum number of items.
        most: usize,
    },
    /// A text is too long.
    #[error("{what} has {bytes} bytes; the limit is {most}")]
    TooLong {
        /// Name of the text.
        what: &'static str,
        /// Size in bytes.
        bytes: usize,
        /// Limit in bytes.
        most: usize,
    },
    /// A title is blank.
    #[error("missing title of the work item")]
    NoTitle,
}

/// Item to add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewItem {
    /// Title of the work.
    pub title: String,
    /// Planned role of the artifact.
    pub role: ItemRole,
    /// Priority of the item.
    pub priority: ItemPriority,
    /// Notes; may be empty.
    pub notes: String,
}

/// Result of storing an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Number of removed lines of commentary.
    pub removed_lines: usize,
}

/// Work items of a run, in the order of their creation.
///
/// ```
/// use harness_control::work::{ItemStatus, NewItem, WorkLedger, WorkLimits};
/// use harness_core::Time;
///
/// let mut ledger = WorkLedger::default();
/// let item = NewItem { title: "Read the folder".to_owned(), ..NewItem::default() };
/// let id = ledger.add(item, Time(0), &WorkLimits::default())?;
/// ledger.update(&id, ItemStatus::Done, "", Time(1), &WorkLimits::default())?;
/// assert!(ledger.is_complete());
/// # Ok::<(), harness_control::work::WorkFault>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkLedger {
    pub(super) items: Vec<WorkItem>,
    /// Number of the last added item.
    pub(super) added: u32,
    /// Number of added items and stored artifacts.
    pub(super) changes: u32,
}

impl WorkLedger {
    /// All items, in order.
    pub fn items(&self) -> &[WorkItem] {
        &self.items
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns an item.
    ///
    /// # Errors
    /// [`WorkFault::Unknown`].
    pub fn get(&self, id: &ItemId) -> Result<&WorkItem, WorkFault> {
        self.items.iter().find(|item| item.id == *id).ok_or_else(|| WorkFault::Unknown { id: id.clone() })
    }

    fn get_mut(&mut self, id: &ItemId) -> Result<&mut WorkItem, WorkFault> {
        self.items.iter_mut().find(|item| item.id == *id).ok_or_else(|| WorkFault::Unknown { id: id.clone() })
    }

    /// Adds an item.
    ///
    /// # Errors
    /// A blank title, a text that is too long, or a full ledger.
    pub fn add(&mut self, item: NewItem, now: Time, limits: &WorkLimits) -> Result<ItemId, WorkFault> {
        self.insert(item, String::new(), now, limits)
    }

    fn insert(
        &mut self,
        item: NewItem,
        revision_of: String,
        now: Time,
        limits: &WorkLimits,
    ) -> Result<ItemId, WorkFault> {
        if item.title.trim().is_empty() {
            return Err(WorkFault::NoTitle);
        }
        within("the title", &item.title, limits.text)?;
        within("the notes", &item.notes, limits.text)?;
        if self.items.len() >= limits.items {
            return Err(WorkFault::TooMany { most: limits.items });
        }
        self.added = self.added.saturating_add(1);
        self.changes = self.changes.saturating_add(1);
        let id = ItemId::numbered(self.added);
        self.items.push(WorkItem {
            id: id.clone(),
            title: item.title,
            status: ItemStatus::Pending,
            priority: item.priority,
            notes: item.notes,
            artifact: String::new(),
            artifact_raw: None,
            stored_at_change: 0,
            artifact_role: item.role,
            requires_revision: false,
            revision_of,
            superseded_by: None,
            added_at_change: self.changes,
            created_at: now,
            updated_at: now,
        });
        Ok(id)
    }

    /// Sets the status of an item, and its notes unless they are empty.
    ///
    /// A revision that is done clears the flag of the revised item, and replaces its artifact if it has one itself.
    /// A skipped revision only clears the flag.
    ///
    /// # Errors
    /// An unknown item, or notes that are too long.
    pub fn update(
        &mut self,
        id: &ItemId,
        status: ItemStatus,
        notes: &str,
        now: Time,
        limits: &WorkLimits,
    ) -> Result<(), WorkFault> {
        within("the notes", notes, limits.text)?;
        let item = self.get_mut(id)?;
        item.status = status;
        if !notes.is_empty() {
            notes.clone_into(&mut item.notes);
        }
        item.updated_at = now;
        self.settle_revisions();
        Ok(())
    }

    /// Stores the artifact of an item, in the given or planned role, without changing the status. A control artifact
    /// must be an [`AuditReport`]; others are cleaned by [`clean_artifact`].
    ///
    /// # Errors
    /// An unknown item, an invalid control artifact, or too many bytes.
    pub fn store(
        &mut self,
        id: &ItemId,
        artifact: &str,
        role: Option<ItemRole>,
        now: Time,
        limits: &WorkLimits,
    ) -> Result<Stored, WorkFault> {
        within("the artifact", artifact, limits.artifact)?;
        let others: usize =
            self.items.iter().filter(|item| item.id != *id).map(|item| item.artifact.len()).sum();
        if others + artifact.len() > limits.artifacts {
            let bytes = others + artifact.len();
            return Err(WorkFault::TooLong {
                what: "the ledger with the artifact",
                bytes,
                most: limits.artifacts,
            });
        }
        let change = self.changes.saturating_add(1);
        let item = self.get_mut(id)?;
        let role = role.unwrap_or(item.artifact_role);
        let removed_lines = if role == ItemRole::Control {
            AuditReport::parse(artifact).map_err(WorkFault::Audit)?;
            artifact.clone_into(&mut item.artifact);
            item.artifact_raw = None;
            0
        } else {
            let cleaned = clean_artifact(artifact);
            item.artifact_raw = (!cleaned.removed.is_empty()).then(|| artifact.to_owned());
            item.artifact = cleaned.text;
            cleaned.removed.len()
        };
        item.artifact_role = role;
        item.stored_at_change = change;
        item.updated_at = now;
        self.changes = change;
        self.settle_revisions();
        Ok(Stored { removed_lines })
    }

    /// Requests a revision of an item: flags it, and adds an item with its role and high priority.
    ///
    /// # Errors
    /// An unknown item, a reason that is too long, or a full ledger.
    pub fn flag_revision(
        &mut self,
        id: &ItemId,
        reason: &str,
        now: Time,
        limits: &WorkLimits,
    ) -> Result<ItemId, WorkFault> {
        let item = self.get(id)?;
        let revision = NewItem {
            title: format!("Revise: {}", item.title),
            role: item.artifact_role,
            priority: ItemPriority::High,
            notes: format!("Revision needed: {reason}"),
        };
        let wider = WorkLimits { text: limits.text.saturating_add(64), ..*limits };
        let revision = self.insert(revision, id.as_str().to_owned(), now, &wider)?;
        let item = self.get_mut(id)?;
        item.requires_revision = true;
        item.updated_at = now;
        Ok(revision)
    }

    /// Replaces artifacts by finished revisions. The flag of an item is cleared when all its revisions are closed.
    fn settle_revisions(&mut self) {
        let mut open: BTreeMap<String, bool> = BTreeMap::new();
        let mut replaced: BTreeMap<String, ItemId> = BTreeMap::new();
        for item in self.items.iter().filter(|item| !item.revision_of.is_empty()) {
            *open.entry(item.revision_of.clone()).or_default() |= !item.status.is_closed();
            if item.status == ItemStatus::Done && !item.artifact.is_empty() {
                replaced.insert(item.revision_of.clone(), item.id.clone());
            }
        }
        for item in &mut self.items {
            if open.get(item.id.as_str()) == Some(&false) {
                item.requires_revision = false;
            }
            item.superseded_by = replaced.remove(item.id.as_str());
        }
    }

    /// Incomplete items: open ones, then flagged ones without a closed revision.
    pub fn incomplete(&self) -> impl Iterator<Item = &WorkItem> {
        let open = self.items.iter().filter(|item| !item.status.is_closed());
        open.chain(self.to_revise())
    }

    /// Closed items that are flagged and have no closed revision.
    pub fn to_revise(&self) -> impl Iterator<Item = &WorkItem> {
        self.items.iter().filter(|item| {
            item.status.is_closed()
                && item.requires_revision
                && !self
                    .items
                    .iter()
                    .any(|other| other.revision_of == item.id.as_str() && other.status.is_closed())
        })
    }

    /// Whether no item is incomplete; true for an empty ledger.
    pub fn is_complete(&self) -> bool {
        self.incomplete().next().is_none()
    }

    /// Percentage of items that are done or skipped; 100 for an empty ledger.
    #[expect(clippy::cast_precision_loss, reason = "a ledger has some hundred items")]
    pub fn percent_complete(&self) -> f64 {
        if self.items.is_empty() {
            return 100.0;
        }
        let closed = self.items.iter().filter(|item| item.status.is_closed()).count();
        closed as f64 / self.items.len() as f64 * 100.0
    }

    /// Number of items by status name, without zeros.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for item in &self.items {
            *counts.entry(item.status.as_str()).or_default() += 1;
        }
        counts
    }

    /// Deliverables in the order of the items.
    pub fn deliverables(&self) -> Vec<Deliverable> {
        let given = self.items.iter().filter(|item| item.is_deliverable());
        given
            .map(|item| Deliverable {
                item_id: item.id.clone(),
                title: item.title.clone(),
                content: item.artifact.clone(),
            })
            .collect()
    }

    /// Ids of delivered items, with the number of the change that stored the artifact.
    pub(crate) fn delivered(&self) -> Vec<(ItemId, u32)> {
        let given = self.items.iter().filter(|item| item.is_deliverable());
        given.map(|item| (item.id.clone(), item.stored_at_change)).collect()
    }

    /// Failed audits without a revision that was added after the report was stored.
    pub fn failed_audits(&self) -> Vec<FailedAudit> {
        let audits = self.items.iter().filter(|item| {
            item.artifact_role == ItemRole::Control
                && !item.artifact.is_empty()
                && matches!(item.status, ItemStatus::Done | ItemStatus::InProgress)
        });
        audits
            .filter_map(|item| {
                let report = AuditReport::parse(&item.artifact).ok()?;
                let answered = self.items.iter().any(|other| {
                    !other.revision_of.is_empty() && other.added_at_change > item.stored_at_change
                });
                (!report.passed && !report.failed_checks.is_empty() && !answered)
                    .then(|| FailedAudit { item_id: item.id.clone(), failed_checks: report.failed_checks })
            })
            .collect()
    }
}

fn within(what: &'static str, text: &str, most: usize) -> Result<(), WorkFault> {
    if text.len() > most { Err(WorkFault::TooLong { what, bytes: text.len(), most }) } else { Ok(()) }
}

/// One line of a list, for the model or a user.
impl fmt::Display for WorkItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] {}", self.status.mark(), self.id, self.title)?;
        if self.requires_revision {
            f.write_str(" [NEEDS REVISION]")?;
        }
        if self.priority != ItemPriority::Medium {
            write!(f, " ({})", self.priority.as_str())?;
        }
        if !self.revision_of.is_empty() {
            write!(f, " (revision of {})", self.revision_of)?;
        }
        Ok(())
    }
}
