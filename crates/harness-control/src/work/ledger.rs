//! All work items of a run.

use std::collections::BTreeMap;
use std::fmt;

use harness_core::Time;
use serde::{Deserialize, Serialize};

use super::{
    AuditFault, AuditReport, Deliverable, FailedAudit, ItemId, ItemPriority, ItemRole, ItemStatus, WorkItem,
    clean_artifact,
};

/// How much a ledger holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkLimits {
    /// Items. Default 500.
    pub items: usize,
    /// Bytes of a title or of notes. Default 4 KiB.
    pub text: usize,
    /// Bytes of one artifact. Default 1 MiB.
    pub artifact: usize,
    /// Bytes of all artifacts. Default 16 MiB.
    pub artifacts: usize,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self { items: 500, text: 4 << 10, artifact: 1 << 20, artifacts: 16 << 20 }
    }
}

/// Why the ledger does not do what it is told; nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkFault {
    /// There is no such item.
    #[error("there is no work item [{id}]")]
    Unknown {
        /// What was asked for.
        id: ItemId,
    },
    /// A control artifact is no audit report.
    #[error("{0}")]
    Audit(AuditFault),
    /// The ledger is full.
    #[error("the ledger holds {most} work items at most")]
    TooMany {
        /// The bound.
        most: usize,
    },
    /// A text is too long.
    #[error("{what} has {bytes} bytes; at most {most} are kept")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// A title is blank.
    #[error("a work item needs a title")]
    NoTitle,
}

/// What is to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewItem {
    /// What is to be done.
    pub title: String,
    /// What its artifact will be for.
    pub role: ItemRole,
    /// How much it matters.
    pub priority: ItemPriority,
    /// More about it.
    pub notes: String,
}

/// What storing an artifact did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// How many lines of talk were removed.
    pub removed_lines: usize,
}

/// The work items of a run, in the order in which they were added.
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
    /// The number of the item added last.
    pub(super) added: u32,
    /// How many times an item was added or an artifact stored.
    pub(super) changes: u32,
}

impl WorkLedger {
    /// All items, in order.
    pub fn items(&self) -> &[WorkItem] {
        &self.items
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item of that name.
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
    /// A blank or too long title, too long notes, a full ledger.
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

    /// Says how far an item is; notes that are not empty replace those before.
    ///
    /// A revision that is done takes the place of what it revises: the flag of the item goes, and its
    /// artifact is no deliverable any more where the revision has one. A revision that is skipped lets the
    /// item stand as it is.
    ///
    /// # Errors
    /// An unknown item, notes that are too long.
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

    /// Stores what came of an item; its status stays. Without a role the item keeps the one that it was
    /// planned with. A control artifact must be an [`AuditReport`]; any other is cleaned first (see
    /// [`clean_artifact`]).
    ///
    /// # Errors
    /// An unknown item, a control artifact that is no report, too many bytes.
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

    /// Asks for a revision of an item: flags it, and adds an item of the same role and high priority that
    /// revises it. Each call adds one.
    ///
    /// # Errors
    /// An unknown item, a reason that is too long, a full ledger.
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

    /// Lets finished revisions take the place of what they revise. A flag goes when every revision of its
    /// item is closed.
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

    /// What is left to do: items that are neither done nor skipped, then flagged ones that no closed
    /// revision answers.
    pub fn incomplete(&self) -> impl Iterator<Item = &WorkItem> {
        let open = self.items.iter().filter(|item| !item.status.is_closed());
        open.chain(self.to_revise())
    }

    /// Closed items that are flagged, without a closed revision.
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

    /// Whether nothing is left to do; so it is in an empty ledger.
    pub fn is_complete(&self) -> bool {
        self.incomplete().next().is_none()
    }

    /// The share of items that are done or skipped, in percent; 100 in an empty ledger.
    #[expect(clippy::cast_precision_loss, reason = "a ledger has some hundred items")]
    pub fn percent_complete(&self) -> f64 {
        if self.items.is_empty() {
            return 100.0;
        }
        let closed = self.items.iter().filter(|item| item.status.is_closed()).count();
        closed as f64 / self.items.len() as f64 * 100.0
    }

    /// How many items have each status, without those that none has; sorted by the status's name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for item in &self.items {
            *counts.entry(item.status.as_str()).or_default() += 1;
        }
        counts
    }

    /// What the run hands over, in the order of the ledger.
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

    /// Which artifacts are delivered, each with the number of the change that stored it.
    pub(crate) fn delivered(&self) -> Vec<(ItemId, u32)> {
        let given = self.items.iter().filter(|item| item.is_deliverable());
        given.map(|item| (item.id.clone(), item.stored_at_change)).collect()
    }

    /// Audits that failed and were not answered: no revision was added after the report was stored.
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

/// As a list for a model or a person: one line for each item.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done to a ledger.
    enum Do<'a> {
        Add(&'a str, ItemRole),
        Set(&'a str, ItemStatus),
        Store(&'a str, &'a str),
        Flag(&'a str, &'a str),
    }
    use Do::{Add, Flag, Set, Store};

    const FAILED: &str =
        r#"{"verdict":"fail","checks":[{"name":"sum","result":"fail","detail":""}],"summary":"off"}"#;

    fn ledger(steps: &[Do<'_>]) -> WorkLedger {
        let (mut ledger, limits) = (WorkLedger::default(), WorkLimits::default());
        for step in steps {
            let done = match step {
                Add(title, role) => {
                    let item = NewItem { title: (*title).to_owned(), role: *role, ..NewItem::default() };
                    ledger.add(item, Time(0), &limits).map(drop)
                }
                Set(id, status) => ledger.update(&(*id).into(), *status, "", Time(0), &limits),
                Store(id, text) => ledger.store(&(*id).into(), text, None, Time(0), &limits).map(drop),
                Flag(id, reason) => ledger.flag_revision(&(*id).into(), reason, Time(0), &limits).map(drop),
            };
            done.expect("the step is legal");
        }
        ledger
    }

    /// The items, then what is incomplete, delivered and failed.
    #[track_caller]
    fn check(steps: &[Do<'_>], expected: &str) {
        let ledger = ledger(steps);
        let items: Vec<_> = ledger.items().iter().map(ToString::to_string).collect();
        let open: Vec<_> = ledger.incomplete().map(|item| item.id.as_str()).collect();
        let given: Vec<_> = ledger.deliverables().into_iter().map(|given| given.content).collect();
        let failed: Vec<_> =
            ledger.failed_audits().into_iter().flat_map(|audit| audit.failed_checks).collect();
        let told = format!("{}\nopen {open:?} given {given:?} failed {failed:?}", items.join("\n"));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_finished_revision_takes_the_place_of_what_it_revises() {
        let before = [
            Add("Draft", ItemRole::Deliverable),
            Store("00000001", "v1"),
            Set("00000001", ItemStatus::Done),
            Flag("00000001", "wrong year"),
            Store("00000002", "v2"),
        ];
        check(
            &before,
            "[x] [00000001] Draft [NEEDS REVISION]\n\
             [ ] [00000002] Revise: Draft (high) (revision of 00000001)\n\
             open [\"00000002\", \"00000001\"] given [\"v1\", \"v2\"] failed []",
        );
        let after: Vec<_> = before.into_iter().chain([Set("00000002", ItemStatus::Done)]).collect();
        check(
            &after,
            "[x] [00000001] Draft\n[x] [00000002] Revise: Draft (high) (revision of 00000001)\n\
             open [] given [\"v2\"] failed []",
        );
    }

    #[test]
    fn a_skipped_revision_lets_the_artifact_stand() {
        check(
            &[
                Add("Draft", ItemRole::Deliverable),
                Store("00000001", "v1"),
                Set("00000001", ItemStatus::Done),
                Flag("00000001", "style"),
                Set("00000002", ItemStatus::Skipped),
            ],
            "[x] [00000001] Draft\n[-] [00000002] Revise: Draft (high) (revision of 00000001)\n\
             open [] given [\"v1\"] failed []",
        );
    }

    #[test]
    fn a_failed_audit_is_answered_only_by_a_later_revision() {
        let audit = [
            Add("Table", ItemRole::Deliverable),
            Add("Audit", ItemRole::Control),
            Flag("00000001", "an earlier thing"),
            Store("00000002", FAILED),
            Set("00000002", ItemStatus::Done),
            Set("00000001", ItemStatus::Done),
            Set("00000003", ItemStatus::Done),
        ];
        assert_eq!(ledger(&audit).failed_audits().len(), 1);
        let answered: Vec<_> = audit.into_iter().chain([Flag("00000001", "the sum")]).collect();
        assert_eq!(ledger(&answered).failed_audits(), []);
    }

    #[test]
    fn the_role_of_an_item_stays_when_none_is_given() {
        let (mut ledger, limits) = (ledger(&[Add("Audit", ItemRole::Control)]), WorkLimits::default());
        let fault = ledger.store(&"00000001".into(), "no report", None, Time(0), &limits);
        assert!(matches!(fault, Err(WorkFault::Audit(_))), "a control item can not hold just anything");
        assert_eq!(ledger.items()[0].artifact, "");
    }

    #[test]
    fn every_bound_holds_and_changes_nothing() {
        let limits = WorkLimits { items: 1, text: 8, artifact: 4, artifacts: 4 };
        let mut ledger = WorkLedger::default();
        let item = |title: &str| NewItem { title: title.to_owned(), ..NewItem::default() };
        assert_eq!(ledger.add(item(" "), Time(0), &limits), Err(WorkFault::NoTitle));
        assert!(matches!(
            ledger.add(item("too long a title"), Time(0), &limits),
            Err(WorkFault::TooLong { .. })
        ));
        let id = ledger.add(item("A"), Time(0), &limits).expect("fits");
        let before = ledger.clone();
        assert_eq!(ledger.add(item("B"), Time(0), &limits), Err(WorkFault::TooMany { most: 1 }));
        assert!(matches!(ledger.store(&id, "12345", None, Time(0), &limits), Err(WorkFault::TooLong { .. })));
        assert!(matches!(
            ledger.update(&"x".into(), ItemStatus::Done, "", Time(0), &limits),
            Err(WorkFault::Unknown { .. })
        ));
        assert_eq!(ledger.flag_revision(&id, "r", Time(0), &limits), Err(WorkFault::TooMany { most: 1 }));
        assert_eq!(ledger, before);
    }

    #[test]
    fn a_ledger_reads_back_as_it_was() {
        let ledger = ledger(&[
            Add("A", ItemRole::Deliverable),
            Store("00000001", "Let me see:\n1"),
            Flag("00000001", "r"),
        ]);
        let text = serde_json::to_string(&ledger).expect("JSON");
        assert_eq!(serde_json::from_str::<WorkLedger>(&text).expect("a ledger"), ledger);
    }
}
