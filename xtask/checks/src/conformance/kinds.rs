//! Which code judges which kind of vector.

use std::path::Path;

use super::Verdict;

/// Judges all vectors of one file or case folder.
pub(super) type Runner = fn(&Path) -> Vec<(String, Verdict)>;

/// One line per supported kind. Vectors of any other kind count as skipped under its name.
const RUNNERS: &[(&str, Runner)] = &[
    ("anchoring", super::memory::anchoring::run),
    ("channel", super::runtime::channel::run),
    ("checkpoint", super::runtime::checkpoint::run),
    ("cli-runner", super::adapters::cli_runner::run),
    ("compaction-plan", super::compaction::run),
    ("content-hash", super::compaction::run),
    ("artifact-cleaning", super::control::run),
    ("builtin-layers", super::memory_builtin::run),
    ("contract", super::control::run),
    ("control-artifact", super::control::run),
    ("delivery-mode", super::runtime::threads::delivery),
    ("descriptor", super::descriptor::run),
    ("determinism", super::compaction::run),
    ("direct-clear", super::compaction::run),
    ("durability", super::compaction::run),
    ("group-window", super::compaction::run),
    ("grouping", super::compaction::run),
    ("history-projection", super::memory::projection::run),
    ("hooks", super::control::run),
    ("item-schema", super::memory::schema::run),
    ("jit", super::control::run),
    ("jsonl-session", super::jsonl_session::run),
    ("layer-budget", super::memory::budget::run),
    ("layer-pipeline", super::memory::stack::run),
    ("loop", super::runtime::repeat::run),
    ("model-rounds", super::runtime::rounds::run),
    ("negotiation", super::adapters::negotiation::run),
    ("local-command", super::adapters::local_command::run),
    ("openrouter-request", super::adapters::openrouter_request::run),
    ("openrouter-response", super::adapters::openrouter_response::run),
    ("openrouter-stream", super::adapters::openrouter_stream::run),
    ("relay-message", super::adapters::relay_message::run),
    ("orchestrator", super::orchestrator::run),
    ("parallel", super::runtime::parallel::run),
    ("pairing-repair", super::compaction::run),
    ("pressure", super::compaction::run),
    ("prompt-template", super::prompts::run_template),
    ("recall-mode", super::memory::recall::run),
    ("repair", super::control::run),
    ("run", super::control::run),
    ("session-tree", super::session_tree::run),
    ("skills-prompt", super::prompts::run_skills),
    ("stall", super::control::run),
    ("stop-decision", super::control::run),
    ("steering-aggregation", super::memory::steering::run),
    ("streams", super::runtime::threads::streams),
    ("summarizing-compactor", super::summarizing_compactor::run),
    ("summary-parse", super::compaction::run),
    ("summary-render", super::compaction::run),
    ("token-count", super::compaction::run),
    ("tool-registry", super::tool_registry::run),
    ("turn", super::turn::run),
    ("turn-ext", super::turn::run),
    ("turn-fn", super::turn_fn::run),
    ("view-assembly", super::memory::view::run),
    ("work-items", super::control::run),
    ("workspace-tools", super::workspace_tools::run),
];

/// The runner of a kind, if there is one.
pub(super) fn runner_of(kind: &str) -> Option<Runner> {
    RUNNERS.iter().find(|(name, _)| *name == kind).map(|(_, run)| *run)
}
