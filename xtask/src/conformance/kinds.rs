//! Which code judges which kind of vector.

use std::path::Path;

use super::Verdict;

/// Judges all vectors of one file or case folder.
pub(super) type Runner = fn(&Path) -> Vec<(String, Verdict)>;

/// One line per supported kind. Vectors of any other kind count as skipped under its name.
const RUNNERS: &[(&str, Runner)] = &[
    ("builtin-layers", super::memory_builtin::run),
    ("descriptor", super::descriptor::run),
    ("jsonl-session", super::jsonl_session::run),
    ("session-tree", super::session_tree::run),
    ("summarizing-compactor", super::summarizing_compactor::run),
    ("tool-registry", super::tool_registry::run),
    ("turn", super::turn::run),
    ("turn-ext", super::turn::run),
    ("turn-fn", super::turn_fn::run),
    ("workspace-tools", super::workspace_tools::run),
];

/// The runner of a kind, if there is one.
pub(super) fn runner_of(kind: &str) -> Option<Runner> {
    RUNNERS.iter().find(|(name, _)| *name == kind).map(|(_, run)| *run)
}
