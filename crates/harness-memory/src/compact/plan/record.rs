//! A plan and its records.

use std::collections::HashMap;
use std::fmt;

use harness_core::ArtifactId;
use serde::{Deserialize, Serialize};

use crate::compact::key_data::KeyFields;
use crate::compact::summary::{SpanReference, StructuredSummary};

/// What is done with a message; the later ones are stronger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is shown as it is.
    #[default]
    Include,
    /// A placeholder stands for it.
    Clear,
    /// A summary stands for it and its neighbours.
    Summarize,
    /// It is stored elsewhere, and a pointer stands for it.
    Externalize,
    /// Nothing stands for it.
    Drop,
}

impl Action {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Include => "include",
            Self::Clear => "clear",
            Self::Summarize => "summarize",
            Self::Externalize => "externalize",
            Self::Drop => "drop",
        }
    }

    /// The list of a plan that has its records.
    fn list(self) -> &'static str {
        match self {
            Self::Include => "messages",
            Self::Clear => "clearings",
            Self::Summarize => "summarizations",
            Self::Externalize => "externalizations",
            Self::Drop => "drops",
        }
    }
}

/// Messages that are cleared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClearRecord {
    /// Which.
    pub span: SpanReference,
    /// What of them stays.
    pub preserved_fields: KeyFields,
}

/// Messages that a summary stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummarizationRecord {
    /// Which.
    pub span: SpanReference,
    /// The summary.
    pub summary: StructuredSummary,
    /// Its tokens.
    pub summary_token_count: u64,
}

/// Messages that are stored elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExternalizationRecord {
    /// Which.
    pub span: SpanReference,
    /// Where.
    pub artifact_id: ArtifactId,
    /// What they say, in short.
    pub summary: StructuredSummary,
    /// When to read them.
    #[serde(default)]
    pub rehydrate_hint: String,
}

/// Messages that are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DropRecord {
    /// Which.
    pub span: SpanReference,
    /// Why.
    pub reason: String,
}

/// Which messages of a thread are shown how. The thread itself stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionPlan {
    /// The thread.
    pub thread_id: String,
    /// Its length when the plan was made.
    pub thread_version: u64,
    /// When that was, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// What is stored elsewhere.
    pub externalizations: Vec<ExternalizationRecord>,
    /// What is summarized.
    pub summarizations: Vec<SummarizationRecord>,
    /// What is cleared.
    pub clearings: Vec<ClearRecord>,
    /// What is left out.
    pub drops: Vec<DropRecord>,
    /// Tokens of the messages as they are.
    pub original_token_count: u64,
    /// Tokens of the messages as the plan shows them.
    pub compacted_token_count: u64,
}

/// A message that two lists of a plan name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanWarning {
    /// The message.
    pub message_id: String,
    /// What the weaker list does with it.
    pub weaker: Action,
    /// What the stronger list does with it; this counts.
    pub stronger: Action,
}

impl fmt::Display for PlanWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (weaker, stronger) = (self.weaker.list(), self.stronger.list());
        let id = &self.message_id;
        write!(f, "Message {id} in both {weaker} and {stronger}; {stronger} takes precedence")
    }
}

/// A record of any list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record<'a> {
    Clear(&'a ClearRecord),
    Summarize(&'a SummarizationRecord),
    Externalize(&'a ExternalizationRecord),
    Drop(&'a DropRecord),
}

impl<'a> Record<'a> {
    fn action(self) -> Action {
        match self {
            Self::Clear(_) => Action::Clear,
            Self::Summarize(_) => Action::Summarize,
            Self::Externalize(_) => Action::Externalize,
            Self::Drop(_) => Action::Drop,
        }
    }

    fn span(self) -> &'a SpanReference {
        match self {
            Self::Clear(record) => &record.span,
            Self::Summarize(record) => &record.span,
            Self::Externalize(record) => &record.span,
            Self::Drop(record) => &record.span,
        }
    }
}

/// The records by message.
pub(super) struct Index<'a> {
    pub(super) records: HashMap<&'a str, Record<'a>>,
    warnings: Vec<PlanWarning>,
}

impl CompactionPlan {
    /// Whether it shows everything as it is.
    pub fn is_empty(&self) -> bool {
        self.records().next().is_none()
    }

    /// By how many tokens the view is shorter.
    pub fn tokens_freed(&self) -> u64 {
        self.original_token_count.saturating_sub(self.compacted_token_count)
    }

    /// What is done with a message. Costs a look at every record: for many messages use
    /// [`CompactionPlan::actions`].
    pub fn action_of(&self, message_id: &str) -> Action {
        self.index().records.get(message_id).map_or(Action::Include, |record| record.action())
    }

    /// What is done with every message that the plan names, sorted by name.
    pub fn actions(&self) -> Vec<(String, Action)> {
        let index = self.index();
        let mut actions: Vec<_> =
            index.records.iter().map(|(id, record)| ((*id).to_owned(), record.action())).collect();
        actions.sort();
        actions
    }

    /// The messages that two lists name.
    pub fn warnings(&self) -> Vec<PlanWarning> {
        self.index().warnings
    }

    /// All records, the weaker lists first.
    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let clearings = self.clearings.iter().map(Record::Clear);
        let summarizations = self.summarizations.iter().map(Record::Summarize);
        let externalizations = self.externalizations.iter().map(Record::Externalize);
        clearings.chain(summarizations).chain(externalizations).chain(self.drops.iter().map(Record::Drop))
    }

    pub(super) fn index(&self) -> Index<'_> {
        let mut index = Index { records: HashMap::new(), warnings: Vec::new() };
        for record in self.records() {
            for id in &record.span().message_ids {
                let known = index.records.get(&**id).map(|known| known.action());
                if known.is_none_or(|known| record.action() > known) {
                    index.records.insert(id, record);
                }
                if let Some(weaker) = known.filter(|known| *known != record.action()) {
                    let (message_id, stronger) = (id.to_string(), record.action());
                    index.warnings.push(PlanWarning { message_id, weaker, stronger });
                }
            }
        }
        index
    }
}
