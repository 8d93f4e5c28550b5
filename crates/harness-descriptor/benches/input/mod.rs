//! A large descriptor of any size, the same at each run.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

const WORDS: [&str; 24] = [
    "anchor", "beacon", "canal", "dune", "estuary", "ferry", "gravel", "harbour", "island", "jetty", "kelp",
    "lagoon", "mooring", "narrows", "oyster", "pier", "quay", "reef", "sandbar", "tide", "undertow",
    "voyage", "wharf", "yacht",
];

/// Agents, parts and prompt files at a scale of 1: 2 MiB of text, half of it in prompt files.
const AGENTS: usize = 200;
const PARTS: usize = 300;

/// Numbers that look random: Knuth's multiplicative generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }

    /// Lines of words, each indented.
    fn prose(&mut self, bytes: usize, indent: &str) -> String {
        let mut text = String::with_capacity(bytes + 128);
        let mut line = 0;
        while text.len() < bytes {
            let word = WORDS[self.below(WORDS.len())];
            if line == 0 {
                text.push_str(indent);
            } else {
                text.push(' ');
            }
            text.push_str(word);
            line += word.len() + 1;
            if line > 70 {
                text.push('\n');
                line = 0;
            }
        }
        text.push('\n');
        text
    }
}

/// Writes `harness.yaml` and its prompt files into `folder`.
pub(crate) fn write(folder: &Path, scale: usize) -> io::Result<()> {
    let mut numbers = Numbers(7);
    let (agents, parts) = (AGENTS * scale, PARTS * scale);
    let mut yaml = String::from(
        "descriptor_version: aioc.agent_graph.v0\nmetadata: {name: harbour, version: v1}\n\
         runtime: {entry_agent: agent_0, max_turns: 8}\ncontext:\n  references:\n",
    );
    for n in 0..20 {
        push(
            &mut yaml,
            format_args!("    values.v{n}: {{type: string}}\n    flags.f{n}: {{type: boolean}}\n"),
        );
    }
    yaml.push_str("instruction_parts:\n");
    for n in 0..parts {
        push(&mut yaml, format_args!("  part_{n}: |\n{}", numbers.prose(3600, "    ")));
    }
    yaml.push_str("tools:\n");
    for n in 0..50 {
        push(&mut yaml, format_args!("  tool_{n}: {{target: \"harbour.tool.{n}\"}}\n"));
    }
    yaml.push_str("agent_defaults: {model: small, modelSettings: {temperature: 0.2}}\nagents:\n");
    std::fs::create_dir_all(folder.join("prompts"))?;
    for n in 0..agents {
        let (next, flag, value) = ((n + 1) % agents, n % 20, n % 20);
        let (first, second, third) = (n % parts, (n + 1) % parts, (n + 2) % parts);
        push(
            &mut yaml,
            format_args!(
                "  agent_{n}:\n    name: Agent {n}\n    tools: [tool_{}, tool_{}]\n    handoffs: \
                 [agent_{next}, {{agent: agent_0, where: {{context: flags.f{flag}}}}}]\n    \
                 instructions_sequence:\n      - {{ref: part_{first}, where: {{context: flags.f0}}}}\n      \
                 - {{ref: part_{second}, where: {{context: flags.f1}}}}\n      - {{ref: part_{third}, where: \
                 {{context: flags.f2}}}}\n      - {{file: prompts/p{n}.md}}\n      - {{text: \"Hello \
                 {{{{context.values.v{value}}}}}\"}}\n",
                n % 50,
                (n + 7) % 50,
            ),
        );
        std::fs::write(folder.join(format!("prompts/p{n}.md")), numbers.prose(5200, ""))?;
    }
    std::fs::write(folder.join("harness.yaml"), yaml)?;
    std::fs::write(folder.join("template.yaml"), template(&mut numbers))?;
    std::fs::write(folder.join("template-context.json"), context())
}

/// One agent whose instructions have 20 placeholders.
fn template(numbers: &mut Numbers) -> String {
    let mut yaml = String::from("runtime: {entry_agent: a}\ncontext:\n  references:\n");
    for n in 0..20 {
        push(&mut yaml, format_args!("    values.v{n}: true\n"));
    }
    yaml.push_str("agents:\n  a:\n    model: m\n    instructions: |\n");
    for n in 0..20 {
        let line = numbers.prose(70, "      ");
        push(&mut yaml, format_args!("{} {{{{context.values.v{n}}}}}\n", line.trim_end().replace('\n', " ")));
    }
    yaml
}

fn context() -> String {
    let values: Vec<String> = (0..20).map(|n| format!(r#""v{n}":"value number {n}""#)).collect();
    format!(r#"{{"values":{{{}}}}}"#, values.join(","))
}

fn push(yaml: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = yaml.write_fmt(text);
}
