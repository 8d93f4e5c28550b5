//! Decisions about calls that need approval.

use clap::{Args, ValueEnum as _};

use super::Approve;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// Approve this pending call (repeatable), or choose how to decide all calls that need
    /// approval: `ask` prompts, `always` approves, `never` denies [default: ask]
    #[arg(long, value_name = "CALL|ask|always|never")]
    pub(crate) approve: Vec<String>,

    /// Deny this pending call and send the reason to the model (repeatable)
    #[arg(long, value_name = "CALL[=REASON]")]
    pub(crate) deny: Vec<String>,

    /// Approve this pending call with new arguments, a JSON object (repeatable)
    #[arg(long, value_name = "CALL=JSON")]
    pub(crate) edit: Vec<String>,
}

impl ApprovalArgs {
    /// Policy for calls without a decision; the last one given applies.
    pub(crate) fn policy(&self) -> Option<Approve> {
        self.approve.iter().rev().find_map(|text| policy(text))
    }

    /// Calls to approve.
    pub(crate) fn approved(&self) -> impl Iterator<Item = &str> {
        self.approve.iter().map(String::as_str).filter(|text| policy(text).is_none())
    }

    /// Whether a decision names a call.
    pub(crate) fn names_calls(&self) -> bool {
        self.approved().next().is_some() || !self.deny.is_empty() || !self.edit.is_empty()
    }
}

fn policy(text: &str) -> Option<Approve> {
    Approve::from_str(text, false).ok()
}
