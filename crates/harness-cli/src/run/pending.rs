//! Messages about pending calls.

use std::fmt::Write as _;
use std::path::Path;

use harness::core::Evidence;
use harness::core::message::ApprovalRequest;
use harness::core::port::ProposedCall;

use super::decisions::named;
use crate::render::{call_rows, visible};
use crate::terminal;

/// Calls that stay pending, as the approver saw them.
pub(super) struct PendingCalls<'a> {
    calls: Vec<&'a ProposedCall>,
}

impl<'a> PendingCalls<'a> {
    /// Calls for which a run ended.
    pub(super) fn of(evidence: &Evidence, proposed: &'a [ProposedCall]) -> Self {
        let Evidence::Held(requests) = evidence else { return Self { calls: Vec::new() } };
        let seen = |request: &ApprovalRequest| {
            proposed.iter().rev().find(|one| Some(&one.call.id) == request.call_id.as_ref())
        };
        Self { calls: requests.iter().filter_map(seen).collect() }
    }

    /// Each call with its id and all arguments.
    pub(super) fn describe(&self) -> String {
        let (columns, _) = terminal::question_size();
        let mut text = String::new();
        for proposed in &self.calls {
            let call = &proposed.call;
            let _ =
                writeln!(text, "pending call `{}`: {}", visible(call.id.as_str()), visible(&proposed.reason));
            for row in call_rows(call.name.as_str(), call.arguments.text(), columns.saturating_sub(3).max(20))
            {
                let _ = writeln!(text, "  {}", row.plain());
            }
        }
        text
    }

    /// Commands that decide on the first of them.
    pub(super) fn next(&self, session: Option<&Path>, more: &str) -> Option<String> {
        let first = named(self.calls.first()?);
        let Some(session) = session else {
            return Some(
                "the calls cannot be decided later, because the run is kept nowhere: run it again with \
                 --session FILE, on a terminal, or with --approve always"
                    .to_owned(),
            );
        };
        let resume = format!("harness resume {}{more}", session.display());
        Some(format!(
            "approve with: {resume} --approve {first}\ndeny with: {resume} --deny {first}=REASON\nchange with: \
             {resume} --edit {first}=JSON"
        ))
    }
}
