//! Standing approvals of a conversation.

use harness::core::message::ToolCall;
use harness::tools::{ApprovalRule, StandingApprovals};

use super::app::Scope;
use crate::render::visible;

/// Maximum size in bytes of the arguments of a standing approval.
const LONGEST: usize = 64 << 10;

/// Approves calls like this one from now on; returns the confirmation for the user.
pub(super) fn add(standing: &StandingApprovals, call: &ToolCall, scope: Scope) -> String {
    let rule = match scope {
        Scope::Arguments if call.arguments.text().len() > LONGEST => {
            return format!("approved once: arguments of more than {LONGEST} bytes cannot be granted");
        }
        Scope::Arguments => ApprovalRule::of_call(call),
        Scope::Tool => ApprovalRule::of_tool(call.name.clone()),
    };
    let text = format!("granted in this conversation: {}; /grants lists grants", describe(&rule));
    standing.add(rule);
    text
}

/// All standing approvals, numbered.
pub(super) fn list(standing: &StandingApprovals) -> String {
    let rules = standing.rules();
    if rules.is_empty() {
        return "no grants: every call that needs approval prompts".to_owned();
    }
    let lines = rules.iter().enumerate().map(|(number, rule)| format!("{}  {}", number + 1, describe(rule)));
    lines.chain(["/revoke N removes a grant".to_owned()]).collect::<Vec<_>>().join("\n")
}

/// One standing approval on one line.
pub(super) fn summary(standing: &StandingApprovals) -> String {
    let rules: Vec<String> = standing.rules().iter().map(describe).collect();
    if rules.is_empty() { "none".to_owned() } else { rules.join("; ") }
}

/// Revokes a standing approval by its number in [`list`].
///
/// # Errors
/// The number does not exist.
pub(super) fn revoke(standing: &StandingApprovals, number: usize) -> Result<String, String> {
    let rules = standing.rules();
    match rules.get(number.saturating_sub(1)).filter(|rule| standing.revoke(rule)) {
        Some(rule) => Ok(format!("revoked: {}", describe(rule))),
        None => Err(format!("no grant {number}; /grants lists grants")),
    }
}

/// `pay {"cents":5}` or `every call of pay`
fn describe(rule: &ApprovalRule) -> String {
    let name = visible(rule.tool_name.as_str());
    match &rule.arguments {
        Some(arguments) => format!("{name} {}", visible(arguments.text())),
        None => format!("every call of {name}"),
    }
}
