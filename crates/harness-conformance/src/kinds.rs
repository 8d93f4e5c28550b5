//! Which code judges which kind of vector.

use crate::driver::{DRIVERS, Driver};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
type Runner = fn(&Vector) -> Verdict;

/// Judges a vector under a driver.
type Driven = fn(&Vector, &dyn Driver) -> Verdict;

/// One line per kind. Vectors of any other kind fail.
const RUNNERS: &[(&str, Runner)] = &[
    ("anchoring", crate::memory::anchoring::run),
    ("channel", crate::runtime::channel::run),
    ("cli-runner", crate::adapters::cli_runner::run),
    ("compaction-plan", crate::compaction::run),
    ("content-hash", crate::compaction::run),
    ("artifact-cleaning", crate::control::run),
    ("builtin-layers", crate::memory_builtin::run),
    ("contract", crate::control::run),
    ("control-artifact", crate::control::run),
    ("descriptor", crate::descriptor::run),
    ("determinism", crate::compaction::run),
    ("direct-clear", crate::compaction::run),
    ("durability", crate::compaction::run),
    ("group-window", crate::compaction::run),
    ("grouping", crate::compaction::run),
    ("history-projection", crate::memory::projection::run),
    ("hooks", crate::control::run),
    ("item-schema", crate::memory::schema::run),
    ("jit", crate::control::run),
    ("jsonl-session", crate::jsonl_session::run),
    ("layer-budget", crate::memory::budget::run),
    ("layer-pipeline", crate::memory::stack::run),
    ("loop", crate::runtime::repeat::run),
    ("model-rounds", crate::runtime::rounds::run),
    ("negotiation", crate::adapters::negotiation::run),
    ("local-command", crate::adapters::local_command::run),
    ("openrouter-request", crate::adapters::openrouter_request::run),
    ("openrouter-response", crate::adapters::openrouter_response::run),
    ("openrouter-stream", crate::adapters::openrouter_stream::run),
    ("relay-message", crate::adapters::relay_message::run),
    ("parallel", crate::runtime::parallel::run),
    ("pairing-repair", crate::compaction::run),
    ("pressure", crate::compaction::run),
    ("prompt-template", crate::prompts::run_template),
    ("recall-mode", crate::memory::recall::run),
    ("repair", crate::control::run),
    ("run", crate::control::run),
    ("session-tree", crate::session_tree::run),
    ("skills-prompt", crate::prompts::run_skills),
    ("stall", crate::control::run),
    ("stop-decision", crate::control::run),
    ("steering-aggregation", crate::memory::steering::run),
    ("summarizing-compactor", crate::summarizing_compactor::run),
    ("summary-parse", crate::compaction::run),
    ("summary-render", crate::compaction::run),
    ("token-count", crate::compaction::run),
    ("tool-registry", crate::tool_registry::run),
    ("turn-fn", crate::turn_fn::run),
    ("view-assembly", crate::memory::view::run),
    ("work-items", crate::control::run),
    ("workspace-tools", crate::workspace_tools::run),
];

/// One line per kind whose vectors run under each driver.
const DRIVEN: &[(&str, Driven)] = &[("turn", crate::turn::run), ("turn-ext", crate::turn::run)];

/// One line per kind whose vectors run under each driver that has threads, and with them a store.
const THREADS: &[(&str, Driven)] = &[
    ("checkpoint", crate::runtime::checkpoint::run),
    ("delivery-mode", crate::runtime::threads::run),
    ("orchestrator", crate::orchestrator::run),
    ("streams", crate::runtime::streams::run),
];

/// The drivers that a vector runs under, and those that skip it with a reason. Without a machine in it the first runs it.
pub(crate) fn drivers_of(vector: &Vector) -> impl Iterator<Item = &'static dyn Driver> {
    let is_of = |kinds: &[(&str, Driven)]| kinds.iter().any(|(name, _)| *name == vector.kind);
    let (drives, has_threads) = (is_of(DRIVEN), is_of(THREADS));
    let takes = move |driver: &dyn Driver| {
        let runs = drives || (has_threads && driver.threads().is_some());
        driver.name().is_empty() || runs || driver.skips(vector).is_some()
    };
    DRIVERS.iter().copied().filter(move |driver| takes(*driver))
}

/// Judges a vector under a driver; nothing when its kind is unknown.
pub(crate) fn judge(vector: &Vector, driver: &dyn Driver) -> Option<Verdict> {
    let plain = RUNNERS.iter().find(|(name, _)| *name == vector.kind).map(|(_, run)| run(vector));
    let mut runners = DRIVEN.iter().chain(THREADS);
    let mut under = || runners.find(|(name, _)| *name == vector.kind).map(|(_, run)| run(vector, driver));
    plain.or_else(&mut under)
}
