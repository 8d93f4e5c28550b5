//! Decisions on calls of a chat.

use std::sync::Arc;

use harness::core::message::ApprovalRequest;
use harness::core::port::{ApprovalAsk, Approver, Decision, Prepared};
use harness::core::{ApprovalId, Fault};
use harness::runtime::Approvals;
use harness::tools::{FileEdits, FilePreview, Modes, StandingApprovals};
use parking_lot::Mutex;

use super::assistant::Assistant;
use crate::run::approve::CommandLineApprover;

/// Approver of the conversation's calls.
pub(super) enum Decider {
    /// The user at the terminal, except for calls with a standing approval.
    Person { standing: StandingApprovals, modes: Option<Modes> },
    /// The command line.
    Rule(CommandLineApprover),
}

impl Approver for Decider {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        let (standing, modes) = match self {
            Self::Rule(rule) => return rule.decide(ask).await,
            Self::Person { standing, modes } => (standing, modes),
        };
        let def = ask.proposed.def.clone();
        let mode = modes.as_ref().map(|modes| modes.of(ask.proposed.origin.thread.as_ref()));
        let decision = standing.decide(ask).await;
        // The mode may have been changed while the call was pending.
        let mode = mode.map(|mode| mode.current()).filter(|mode| !mode.allows(&def));
        match (decision, mode) {
            (Decision::Granted, Some(mode)) => {
                let reason =
                    format!("the user changed to the mode `{}`, which does not allow this call", mode.name);
                Decision::Denied { reason }
            }
            (decision, _) => decision,
        }
    }
}

/// The change of the file call in the prompt. Calls are prompted for one at a time. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Previews(Arc<Mutex<Option<Current>>>);

type Current = (ApprovalId, Arc<FilePreview>);

impl Previews {
    /// The change that a call would make, if it is a file call that is prompted for.
    pub(super) fn of(&self, approval: &ApprovalId) -> Option<Arc<FilePreview>> {
        let current = self.0.lock();
        current.as_ref().filter(|(id, _)| id == approval).map(|(_, preview)| Arc::clone(preview))
    }

    fn set(&self, approval: ApprovalId, preview: FilePreview) {
        *self.0.lock() = Some((approval, Arc::new(preview)));
    }
}

/// Holds calls for the user, those that change files together with the change.
pub(super) struct Prompts {
    pub(super) approvals: Approvals,
    pub(super) edits: Option<FileEdits>,
    pub(super) previews: Previews,
}

impl Prompts {
    /// Prompts that standing approvals answer first, if the assistant's mode or a grant covers a call.
    pub(super) fn standing(self, assistant: Option<&Assistant>) -> StandingApprovals {
        let standing = StandingApprovals::around(self);
        match assistant {
            Some(assistant) => assistant.accepting(standing),
            None => standing,
        }
    }
}

impl Approver for Prompts {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        if let Some(edits) = &self.edits {
            match edits.preview(&ask.proposed).await {
                Some(Ok(preview)) => self.previews.set(ask.proposed.id(), preview),
                // There is nothing to decide: the call would fail.
                Some(Err(reason)) => return Decision::Denied { reason },
                None => {}
            }
        }
        self.approvals.decide_call(ask).await
    }

    async fn prepare(&self, request: ApprovalRequest) -> Result<Prepared, Fault> {
        self.approvals.prepare(request).await
    }
}
