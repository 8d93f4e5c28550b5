//! The keys and words that a descriptor knows.

/// What a descriptor has, those of source 000 first.
pub(super) const ROOT: &[&str] = &[
    "descriptor_version",
    "metadata",
    "runtime",
    "context",
    "instruction_parts",
    "tools",
    "agent_defaults",
    "agents",
    "run",
];
/// What source 000 knows of it.
pub(super) const ROOT_000: &[&str] = ROOT.split_at(ROOT.len() - 1).0;
/// What source 000 knows of it.
pub(super) const RUNTIME_000: &[&str] = &["entry_agent", "max_turns"];
pub(super) const RUNTIME: &[&str] = &["entry_agent", "max_iterations", "max_turns"];
pub(super) const CONTEXT: &[&str] = &["fields", "references"];
pub(super) const FIELD: &[&str] = &["type", "default", "optional", "mutable", "redact", "description"];
pub(super) const REFERENCE: &[&str] = &["type", "optional", "description"];
pub(super) const TOOL: &[&str] = &["target", "description"];
pub(super) const DEFAULTS: &[&str] = &[
    "model",
    "modelSettings",
    "instructions",
    "instructions_file",
    "instructions_files",
    "instructions_sequence",
];
pub(super) const AGENT: &[&str] = &[
    "name",
    "handoffDescription",
    "model",
    "modelSettings",
    "tools",
    "handoffs",
    "instructions",
    "instructions_file",
    "instructions_files",
    "instructions_sequence",
];
pub(super) const HANDOFF: &[&str] = &["agent", "where"];
pub(super) const ITEM: &[&str] = &["file", "ref", "text", "where"];
pub(super) const PART: &[&str] = &["text", "where"];
pub(super) const WHERE: &[&str] = &["context"];

/// The types that fields and references may name. Only `boolean` has an effect of its own.
pub(super) const TYPES: &[&str] = &[
    "any",
    "array",
    "boolean",
    "date",
    "integer",
    "list",
    "null",
    "number",
    "object",
    "string",
    "timestamp",
];

/// The version that source 000 documents.
pub(super) const VERSION: &str = "aioc.agent_graph.v0";
