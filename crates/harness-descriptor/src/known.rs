//! The keys and words that a descriptor knows.

/// Keys of a descriptor.
pub(crate) const ROOT: &[&str] = &[
    "descriptor_version",
    "metadata",
    "runtime",
    "context",
    "instruction_parts",
    "tools",
    "agent_defaults",
    "agents",
    "run",
    "extensions",
];
pub(crate) const RUNTIME: &[&str] = &["entry_agent", "max_iterations", "max_turns"];
pub(crate) const CONTEXT: &[&str] = &["fields", "references"];
pub(crate) const FIELD: &[&str] = &["type", "default", "optional", "mutable", "redact", "description"];
pub(crate) const REFERENCE: &[&str] = &["type", "optional", "description"];
pub(crate) const TOOL: &[&str] = &["target", "description"];
pub(crate) const DEFAULTS: &[&str] = &[
    "model",
    "modelSettings",
    "instructions",
    "instructions_file",
    "instructions_files",
    "instructions_sequence",
];
pub(crate) const AGENT: &[&str] = &[
    "name",
    "handoffDescription",
    "model",
    "modelSettings",
    "output",
    "tools",
    "handoffs",
    "instructions",
    "instructions_file",
    "instructions_files",
    "instructions_sequence",
];
pub(crate) const HANDOFF: &[&str] = &["agent", "where"];
pub(crate) const ITEM: &[&str] = &["file", "ref", "text", "where"];
pub(crate) const PART: &[&str] = &["text", "where"];
pub(crate) const WHERE: &[&str] = &["context"];

/// Types of fields and references. Only `boolean` has an effect.
pub(crate) const TYPES: &[&str] = &[
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

/// The version that is documented.
pub(crate) const VERSION: &str = "aioc.agent_graph.v0";
