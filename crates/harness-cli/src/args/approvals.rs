//! Decisions about calls that need approval.

use clap::{Args, ValueEnum as _};

use super::Approve;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// Approve this pending call (repeatable), or set what happens to every call that needs approval: `ask` on the
    /// terminal, `always` approve, `never` approve [default: ask]
    #[arg(long, value_name = "CALL|ask|always|never")]
    pub(crate) approve: Vec<String>,

    /// Deny this pending call and give the model the reason (repeatable)
    #[arg(long, value_name = "CALL[=REASON]")]
    pub(crate) deny: Vec<String>,

    /// Approve this pending call with other arguments, a JSON object (repeatable)
    #[arg(long, value_name = "CALL=JSON")]
    pub(crate) edit: Vec<String>,
}

impl ApprovalArgs {
    /// What happens to calls that are not named, when that is said: the last word counts.
    pub(crate) fn policy(&self) -> Option<Approve> {
        self.approve.iter().rev().find_map(|text| policy(text))
    }

    /// The calls to approve.
    pub(crate) fn approved(&self) -> impl Iterator<Item = &str> {
        self.approve.iter().map(String::as_str).filter(|text| policy(text).is_none())
    }

    /// Whether a call is named.
    pub(crate) fn names_calls(&self) -> bool {
        self.approved().next().is_some() || !self.deny.is_empty() || !self.edit.is_empty()
    }
}

fn policy(text: &str) -> Option<Approve> {
    Approve::from_str(text, false).ok()
}
