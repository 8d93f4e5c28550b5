//! Climbs a ladder until enough is gone.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::ArtifactId;
use harness_core::message::Message;
use harness_core::port::TokenCounter;

use super::count::total_tokens;
use super::ladder::Strategy;
use super::propose::{CompactionProposal, propose};
use super::record::{
    Action, ClearRecord, CompactionPlan, DropRecord, ExternalizationRecord, SummarizationRecord,
};
use super::render::{pointer_text, summary_text};
use super::scene::Scene;
use crate::compact::durability::DurabilityPolicies;
use crate::compact::error::CompactError;
use crate::compact::item::Item;
use crate::compact::pressure::share;
use crate::compact::summary::{ArtifactReference, Replaced, SpanReference, StructuredSummary};

/// Climbs a ladder of strategies, from the one that hurts least, until what they free reaches a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Coordinator {
    /// The ladder, sorted by [`Strategy::aggressiveness`].
    strategies: Vec<Strategy>,
    /// What may be done with results of tools. Default [`DurabilityPolicies::built_in`].
    pub policies: DurabilityPolicies,
    /// How many proposals are carried out at most. Default all: one that stops above its target while
    /// something is left to do has to be repeated at once.
    pub max_proposals: Option<usize>,
    /// Whether a stored content was shown again in this turn: nothing but clearing is done then, so that
    /// it is not stored again at once. Default false.
    pub has_rehydrated: bool,
}

impl Coordinator {
    /// A coordinator of strategies, in any order.
    pub fn new(strategies: impl IntoIterator<Item = Strategy>) -> Self {
        let mut strategies: Vec<Strategy> = strategies.into_iter().collect();
        strategies.sort_by_key(Strategy::aggressiveness);
        Self {
            strategies,
            policies: DurabilityPolicies::built_in(),
            max_proposals: None,
            has_rehydrated: false,
        }
    }

    /// Begins to free `target` tokens of `items`.
    pub fn begin<'a>(
        &'a self,
        items: &'a [Item],
        counter: &'a dyn TokenCounter,
        target: u64,
    ) -> Coordination<'a> {
        Coordination {
            coordinator: self,
            counter,
            target,
            scene: Scene::of(items, counter, &self.policies),
            ladder: self.strategies.iter(),
            rung: None,
            queue: VecDeque::new(),
            waiting: None,
            outcome: Coordinated::default(),
        }
    }
}

/// What the coordinator cannot do itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Work {
    /// Summarize messages; answered with [`Done::Summary`].
    Summarize {
        /// The messages, in order, whole groups only.
        messages: Vec<Arc<Message>>,
        /// Their names.
        span: SpanReference,
        /// How large the summary is hoped to be, in tokens.
        target_tokens: u64,
    },
    /// Store a content, and summarize what it came from; answered with [`Done::Stored`].
    Store {
        /// The content, exactly.
        content: String,
        /// What it came from.
        messages: Vec<Arc<Message>>,
        /// Their names.
        span: SpanReference,
    },
}

/// What came of a [`Work`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Done {
    /// The summary.
    Summary(StructuredSummary),
    /// Where the content is stored, and what it says in short.
    Stored(ArtifactId, StructuredSummary),
}

/// What a coordination came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Coordinated {
    /// The plan, with the tokens before and after as measured.
    pub plan: CompactionPlan,
    /// What was freed, as estimated. A message that was cleared and then summarized counts twice here; what
    /// was really freed is [`CompactionPlan::tokens_freed`].
    pub estimated_tokens_freed: u64,
    /// Proposals that were made.
    pub proposals_generated: usize,
    /// Proposals that were carried out.
    pub proposals_applied: usize,
    /// What was done, in order, each once.
    pub actions_applied: Vec<Action>,
    /// Proposals that failed. What they were about is as it was.
    pub failed: Vec<CompactError>,
}

/// A coordination at work: [`Coordination::next`] asks, [`Coordination::answer`] goes on,
/// [`Coordination::finish`] ends it at any moment.
pub struct Coordination<'a> {
    coordinator: &'a Coordinator,
    counter: &'a dyn TokenCounter,
    target: u64,
    scene: Scene<'a>,
    ladder: std::slice::Iter<'a, Strategy>,
    rung: Option<&'a Strategy>,
    queue: VecDeque<CompactionProposal>,
    waiting: Option<CompactionProposal>,
    outcome: Coordinated,
}

impl std::fmt::Debug for Coordination<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordination")
            .field("target", &self.target)
            .field("rung", &self.rung)
            .field("queue", &self.queue.len())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl Coordination<'_> {
    /// Goes on to the next thing that others have to do; `None` when nothing is left. Work that was not
    /// answered is given up.
    #[expect(clippy::should_implement_trait, reason = "what comes next depends on the answer in between")]
    pub fn next(&mut self) -> Option<Work> {
        self.waiting = None;
        loop {
            let proposal = self.next_proposal()?;
            match proposal.action {
                Action::Clear => {
                    let record = ClearRecord {
                        span: proposal.span.clone(),
                        preserved_fields: proposal.preserved_fields.clone(),
                    };
                    self.outcome.plan.clearings.push(record);
                    self.applied(&proposal);
                }
                Action::Drop => {
                    let record = DropRecord { span: proposal.span.clone(), reason: proposal.reason.clone() };
                    self.outcome.plan.drops.push(record);
                    self.applied(&proposal);
                }
                Action::Summarize => return Some(self.ask_for_summary(proposal)),
                Action::Externalize => return Some(self.ask_for_storage(proposal)),
                Action::Include => {}
            }
        }
    }

    /// The next proposal of the ladder, while the target is not reached.
    fn next_proposal(&mut self) -> Option<CompactionProposal> {
        let max = self.coordinator.max_proposals.unwrap_or(usize::MAX);
        while self.outcome.estimated_tokens_freed < self.target && self.outcome.proposals_applied < max {
            if let Some(proposal) = self.queue.pop_front() {
                return Some(proposal);
            }
            let rung = self.ladder.next()?;
            self.rung = Some(rung);
            if self.coordinator.has_rehydrated && rung.action() != Action::Clear {
                continue;
            }
            let mut proposals = propose(rung, &self.scene);
            self.outcome.proposals_generated += proposals.len();
            proposals.sort_by_key(|proposal| proposal.priority);
            self.queue = proposals.into();
        }
        None
    }

    fn ask_for_summary(&mut self, proposal: CompactionProposal) -> Work {
        let ratio = match self.rung {
            Some(Strategy::Summarize(summarize)) => summarize.target_ratio,
            _ => 1.0,
        };
        let work = Work::Summarize {
            messages: self.scene.messages(&proposal.units),
            span: proposal.span.clone(),
            target_tokens: share(proposal.tokens, ratio),
        };
        self.waiting = Some(proposal);
        work
    }

    fn ask_for_storage(&mut self, proposal: CompactionProposal) -> Work {
        let units = proposal.units.iter().filter_map(|unit| self.scene.units.get(*unit));
        let work = Work::Store {
            content: units.map(|unit| self.scene.text(unit)).collect::<Vec<_>>().join("\n"),
            messages: self.scene.messages(&proposal.units),
            span: proposal.span.clone(),
        };
        self.waiting = Some(proposal);
        work
    }

    /// Takes the answer to the last [`Work`]. A failure, an answer to something else, and a summary that
    /// may not stand for its messages are recorded as failed: the messages stay as they are.
    pub fn answer(&mut self, done: Result<Done, CompactError>) {
        let Some(proposal) = self.waiting.take() else { return };
        let record = match (proposal.action, done) {
            (Action::Summarize, Ok(Done::Summary(summary))) => self.summarized(&proposal, summary),
            (Action::Externalize, Ok(Done::Stored(id, summary))) => self.stored(&proposal, id, summary),
            (_, Ok(_)) => Err(CompactError::InvalidSetting {
                setting: "answer",
                value: "an answer to something else".to_owned(),
                wanted: "what was asked for",
            }),
            (_, Err(error)) => Err(error),
        };
        match record {
            Ok(()) => self.applied(&proposal),
            Err(error) => self.outcome.failed.push(error),
        }
    }

    fn summarized(
        &mut self,
        proposal: &CompactionProposal,
        summary: StructuredSummary,
    ) -> Result<(), CompactError> {
        let tokens = self.counter.count(&summary_text(&proposal.span, &summary));
        let replaced =
            Replaced { messages: proposal.units.len(), tokens: proposal.tokens, ..Replaced::default() };
        summary.check(tokens, &replaced)?;
        self.outcome.plan.summarizations.push(SummarizationRecord {
            span: proposal.span.clone(),
            summary,
            summary_token_count: tokens,
        });
        Ok(())
    }

    fn stored(
        &mut self,
        proposal: &CompactionProposal,
        artifact_id: ArtifactId,
        mut summary: StructuredSummary,
    ) -> Result<(), CompactError> {
        let reference = ArtifactReference {
            artifact_id: artifact_id.as_str().to_owned(),
            description: DESCRIPTION.to_owned(),
            rehydrate_hint: HINT.to_owned(),
        };
        if !summary.artifacts.iter().any(|known| known.artifact_id == reference.artifact_id) {
            summary.artifacts.push(reference);
        }
        let tokens = self.counter.count(&pointer_text(&artifact_id, &summary));
        if tokens >= proposal.tokens {
            return Err(CompactError::SummaryTooLarge { tokens, replaced: proposal.tokens });
        }
        self.outcome.plan.externalizations.push(ExternalizationRecord {
            span: proposal.span.clone(),
            artifact_id,
            summary,
            rehydrate_hint: HINT.to_owned(),
        });
        Ok(())
    }

    fn applied(&mut self, proposal: &CompactionProposal) {
        let outcome = &mut self.outcome;
        outcome.estimated_tokens_freed += proposal.estimated_tokens_freed;
        outcome.proposals_applied += 1;
        if !outcome.actions_applied.contains(&proposal.action) {
            outcome.actions_applied.push(proposal.action);
        }
    }

    /// The plan so far, measured.
    pub fn finish(self) -> Coordinated {
        let mut outcome = self.outcome;
        let items = self.scene.items;
        outcome.plan.thread_version = self.scene.units.len() as u64;
        outcome.plan.original_token_count = total_tokens(self.counter, items);
        outcome.plan.compacted_token_count = if outcome.plan.is_empty() {
            outcome.plan.original_token_count
        } else {
            total_tokens(self.counter, &outcome.plan.render(items))
        };
        outcome
    }
}

/// What a stored content is, and when to read it.
const DESCRIPTION: &str = "the whole of it";
const HINT: &str = "when the summary is not enough, read it.";
