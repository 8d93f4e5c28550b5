//! The texts of the starter files.

const DESCRIPTOR: &str = include_str!("harness.yaml");
const REGISTRY: &str = include_str!("registry.yaml");

const TOOLS: &str = "
# Tools by the name that agents list; registry.yaml says which program stands behind a target.
tools:
  search_products: { target: products.search }
";

/// The descriptor, for a file of that name.
pub(super) fn descriptor(file: &str, with_registry: bool) -> String {
    let (tools, agent_tools) =
        if with_registry { (TOOLS, "    tools: [search_products]\n") } else { ("", "") };
    let text = DESCRIPTOR.replace("{tools}\n", &format!("{tools}\n"));
    named(&text.replace("{agent_tools}\n", agent_tools), file)
}

/// The registry that belongs to it.
pub(super) fn registry(file: &str) -> String {
    named(REGISTRY, file)
}

/// Puts the file's name in; one that a shell or a comment would misread is left to the reader.
fn named(text: &str, file: &str) -> String {
    let plain = file.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    text.replace("{file}", if plain && !file.is_empty() { file } else { "FILE" })
}
