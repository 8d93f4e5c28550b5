//! The messages of source 000, word for word (reference section 19).
//!
//! They are part of the wire contract of the conformance vectors; people read the messages
//! of [`Fault`]'s own `Display`.

use crate::error::{Fault, PathRule};
use crate::field::{Expected, Field, Form, PathUse, Target};

/// The text of `fault` in the source system, where it has one.
pub(crate) fn message(fault: &Fault) -> Option<String> {
    Some(match fault {
        Fault::Io { .. }
        | Fault::TooLarge { .. }
        | Fault::Yaml(_)
        | Fault::MaxTurns { .. }
        | Fault::UnknownKey { .. }
        | Fault::UndeclaredValue { .. }
        | Fault::UnknownSetting { .. }
        | Fault::MissingSetting { .. }
        | Fault::SettingValue { .. }
        | Fault::Setting { .. }
        | Fault::Contract { .. }
        | Fault::ContractMissing { .. }
        | Fault::UnknownAgent { .. } => {
            return None;
        }
        Fault::NotADescriptor { label, .. } => format!("Invalid harness descriptor YAML: {label}"),
        Fault::WrongType { field, expected } => {
            format!("{} must be {}.", field_text(field), expected_text(*expected)?)
        }
        Fault::NoAgents => "Harness descriptor agents must not be empty.".to_owned(),
        Fault::Exclusive { target, first, second } => exclusive(&target_text(target), *first, *second),
        Fault::InlineBesideFiles { target } => {
            let t = target_text(target);
            format!("{t}.instructions must be a string when used with {t}.instructions_files.")
        }
        Fault::ItemKinds { target, index, .. } => {
            format!("{} must define exactly one of file, ref, or text.", sequence_item(target, *index))
        }
        Fault::PathRule { field, rule, .. } => format!("{} must {}.", field_text(field), rule_text(*rule)),
        Fault::OutsideRoot { field, root, .. } => {
            format!("{} must resolve inside rootDir \"{root}\".", field_text(field))
        }
        Fault::LinkOutsideRoot { target, root, .. } => {
            format!("{} prompt file must resolve inside rootDir \"{root}\".", target_text(target))
        }
        Fault::NoCatalog { target, index, part } => format!(
            "{}.ref references instruction part \"{part}\", but descriptor.instruction_parts is not defined.",
            sequence_item(target, *index)
        ),
        Fault::UnknownPart { target, index, part } => {
            format!("{}.ref references unknown instruction part \"{part}\".", sequence_item(target, *index))
        }
        Fault::PromptMissing { target, path } => {
            format!("Missing promptMap entry for {} prompt file \"{path}\".", target_text(target))
        }
        Fault::PromptMapRequired => PROMPT_MAP_REQUIRED.to_owned(),
        Fault::NotMaterialized { target, .. } => format!(
            "{}.instructions_file/instructions_files/instructions_sequence must be materialized by loadAgentHarnessDescriptor(...) before buildAgentHarness(...).",
            target_text(target)
        ),
        Fault::EmptyPath { used_by } => format!("{} cannot be empty.", path_text(used_by)),
        Fault::BadSegment { used_by, segment } => {
            format!("{} contains invalid segment \"{segment}\".", path_text(used_by))
        }
        Fault::Undeclared { used_by, path } => {
            format!("{} references undeclared context path \"{path}\".", use_text(used_by))
        }
        Fault::NotDeclaredBoolean { used_by, path } => {
            format!("{} context path \"{path}\" must be declared with type \"boolean\".", use_text(used_by))
        }
        Fault::UnknownTool { tool, .. } => format!("Harness descriptor references unknown tool \"{tool}\"."),
        Fault::UnboundTarget { tool, target } => {
            format!("Harness registry is missing target \"{target}\" for tool \"{tool}\".")
        }
        Fault::UnknownHandoff { agent, to } => {
            format!("Harness descriptor references unknown handoff agent \"{to}\" from \"{agent}\".")
        }
        Fault::UnknownEntryAgent { agent } => {
            format!("Harness descriptor entry_agent \"{agent}\" does not exist.")
        }
        Fault::ContextMissing { path } => {
            format!("Harness descriptor instruction could not resolve required context path \"{path}\".")
        }
        Fault::GateMissing { used_by, path } => {
            format!("{} could not resolve context path \"{path}\".", run_text(used_by))
        }
        Fault::GateNotBoolean { used_by, path, .. } => {
            format!("{} context path \"{path}\" must resolve to a boolean.", run_text(used_by))
        }
        Fault::NoModel { agent } => {
            format!("Agent \"{agent}\" has no model configured. Set \"model\" explicitly.")
        }
    })
}

const PROMPT_MAP_REQUIRED: &str = "loadAgentHarnessDescriptor(...) requires promptMap when the descriptor uses \
     instructions_file, instructions_files, or instructions_sequence file items. \
     Use loadAgentHarnessDescriptorFromFile(...) to read prompt files from disk.";

fn target_text(target: &Target) -> String {
    match target {
        Target::Defaults => "Harness descriptor agent_defaults".to_owned(),
        Target::Agent(id) => format!("Harness descriptor agent \"{id}\""),
    }
}

fn sequence_item(target: &Target, index: usize) -> String {
    format!("{}.{}[{index}]", target_text(target), Form::Sequence.key())
}

fn exclusive(target: &str, first: Form, second: Form) -> String {
    match (first, second) {
        (Form::Sequence, Form::File | Form::Files) => format!(
            "{target}.instructions_sequence is mutually exclusive with {target}.instructions_file/instructions_files."
        ),
        (Form::Sequence, _) => {
            format!("{target}.instructions_sequence is mutually exclusive with {target}.{}.", second.key())
        }
        _ => format!("{target}.{} and {target}.{} are mutually exclusive.", first.key(), second.key()),
    }
}

fn field_text(field: &Field) -> String {
    let dotted = |base: String, below: &str| if below.is_empty() { base } else { format!("{base}.{below}") };
    match field {
        Field::DescriptorPath => "Harness descriptor path".to_owned(),
        Field::Root => "Harness descriptor".to_owned(),
        Field::Section(path) => format!("Harness descriptor {path}"),
        Field::EntryAgent => "Harness descriptor runtime.entry_agent".to_owned(),
        Field::Target(target) => target_text(target),
        Field::Key { target, key } => format!("{}.{key}", target_text(target)),
        Field::Item { target, key, index, below } => {
            dotted(format!("{}.{key}[{index}]", target_text(target)), below)
        }
        Field::Part { agent, index, below } => {
            dotted(format!("Agent \"{agent}\" instructions[{index}]"), below)
        }
        Field::CatalogPart(name) => format!("descriptor.instruction_parts.{name}"),
        Field::Tool(id) => format!("Harness descriptor tool \"{id}\""),
        Field::ToolTarget(id) => format!("Harness descriptor tool \"{id}\".target"),
        Field::Reference(key) => format!("Context reference \"{key}\""),
        Field::ContextField(key) => format!("Context field \"{key}\""),
        Field::PromptKey(key) => format!("Prompt map key \"{key}\""),
        Field::PromptEntry(key) => format!("Prompt map entry \"{key}\""),
    }
}

fn expected_text(expected: Expected) -> Option<&'static str> {
    Some(match expected {
        Expected::Object => "an object",
        Expected::String => "a string",
        Expected::NonEmptyString => "a non-empty string",
        Expected::List => "an array",
        Expected::NonEmptyList => "a non-empty array",
        Expected::NonEmptyStringList => "a non-empty array of strings",
        Expected::NonEmptyStringOrObject => "a non-empty string or an object",
        Expected::FlagOrObject => "true, false, or an object",
        Expected::StringOrParts => return None,
    })
}

fn rule_text(rule: PathRule) -> &'static str {
    match rule {
        PathRule::Nul => "not contain null bytes",
        PathRule::Remote => "not be a remote URL",
        PathRule::Absolute => "be relative to the descriptor file",
        PathRule::Glob => "not use globbing characters",
    }
}

/// The name of a context path in messages about its form.
fn path_text(used_by: &PathUse) -> String {
    match used_by {
        PathUse::Reference => "Context reference path".to_owned(),
        PathUse::Field => "Context field path".to_owned(),
        PathUse::Placeholder { text, .. } => format!("Context prompt placeholder \"{text}\""),
        PathUse::PartGate { .. } => "Instruction where.context path".to_owned(),
        PathUse::HandoffGate { agent, to } => {
            format!("Agent \"{agent}\" handoff \"{to}\" where.context path")
        }
    }
}

/// The name of the user of a context path in messages about its declaration.
fn use_text(used_by: &PathUse) -> String {
    match used_by {
        PathUse::Reference | PathUse::Field => path_text(used_by),
        PathUse::Placeholder { agent, .. } => format!("Agent \"{agent}\" instruction"),
        PathUse::PartGate { agent } => format!("Agent \"{agent}\" instruction where"),
        PathUse::HandoffGate { agent, to } => format!("Agent \"{agent}\" handoff \"{to}\" where"),
    }
}

/// The name of a gate in messages about its value in a run.
fn run_text(used_by: &PathUse) -> String {
    match used_by {
        PathUse::Reference | PathUse::Field | PathUse::Placeholder { .. } => path_text(used_by),
        PathUse::PartGate { .. } => "Harness descriptor instruction where".to_owned(),
        PathUse::HandoffGate { agent, to } => {
            format!("Harness descriptor handoff \"{agent}\" to \"{to}\" where")
        }
    }
}
