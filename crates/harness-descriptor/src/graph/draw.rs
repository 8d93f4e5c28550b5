//! The graph as a picture: text for Mermaid and for Graphviz.
//!
//! One [`Drawing`] is made from the graph and written in either language. Names come from a
//! descriptor, which may hold anything, so whatever a language gives a meaning is escaped.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::agents::{Agent, Graph};
use crate::value::Value;

/// A name, condition or tool in a picture is cut after this many characters.
const LONGEST: usize = 60;

impl Graph {
    /// The graph as a Mermaid flowchart: the entry agent first and marked, each agent with its
    /// model and tools, each handoff with its condition; handoffs with a condition are dotted.
    ///
    /// GitHub and many editors show it in a Markdown block of the language `mermaid`.
    ///
    /// ```
    /// use harness_descriptor::{Graph, Registry, load_text};
    ///
    /// let descriptor = load_text("runtime: { entry_agent: a }\nagents: { a: { handoffs: [b] }, b: {} }")?;
    /// let picture = Graph::build(&descriptor, &Registry::new())?.to_mermaid();
    /// assert!(picture.contains("agent_a --> agent_b"));
    /// # Ok::<(), harness_descriptor::DescriptorError>(())
    /// ```
    pub fn to_mermaid(&self) -> String {
        Drawing::of(self).mermaid()
    }

    /// The graph in Graphviz's language, with the content of [`Self::to_mermaid`].
    ///
    /// `dot -Tsvg` makes a picture of it.
    pub fn to_dot(&self) -> String {
        Drawing::of(self).dot()
    }
}

/// Content of a diagram.
struct Drawing<'g> {
    title: Option<&'g str>,
    /// The entry agent first, then the others in the order of the descriptor.
    cards: Vec<Card<'g>>,
    arrows: Vec<Arrow<'g>>,
}

/// Agent in a diagram.
struct Card<'g> {
    /// The node's name in both languages.
    node: String,
    name: &'g str,
    /// The id, where it says more than the name, and the model.
    details: Vec<&'g str>,
    tools: Vec<&'g str>,
    entry: bool,
}

/// Handoff in a diagram.
struct Arrow<'g> {
    from: String,
    to: String,
    condition: Option<&'g str>,
}

impl<'g> Drawing<'g> {
    fn of(graph: &'g Graph) -> Self {
        let entry = graph.entry_agent().id();
        let mut agents: Vec<&Agent> = graph.agents().collect();
        agents.sort_by_key(|agent| agent.id() != entry);
        let cards = agents.iter().map(|agent| Card::of(agent, graph, agent.id() == entry)).collect();
        let arrows = agents.iter().flat_map(|agent| {
            // A repeated handoff is one arrow, unless its condition differs.
            let mut drawn = HashSet::new();
            let arrows = agent.handoffs().iter().filter_map(move |handoff| {
                let condition = handoff.gate().map(super::path::ContextPath::as_str);
                drawn.insert((handoff.to(), condition)).then(|| Arrow {
                    from: node(graph, agent.id()),
                    to: node(graph, handoff.to()),
                    condition,
                })
            });
            arrows.collect::<Vec<_>>()
        });
        let title = graph.metadata().name.as_ref().and_then(Value::as_str);
        Self { title, arrows: arrows.collect(), cards }
    }

    fn mermaid(&self) -> String {
        // Wide enough for the names of models, which would be broken at their hyphens.
        let mut out = String::from("%%{init: {\"flowchart\": {\"wrappingWidth\": 400}}}%%\nflowchart LR\n");
        for agent in &self.cards {
            let mut label = format!("<b>{}</b>", mermaid_text(agent.name));
            if agent.entry {
                label.push_str("<br/><i>entry agent</i>");
            }
            for detail in &agent.details {
                let _ = write!(label, "<br/>{}", mermaid_text(detail));
            }
            for tool in &agent.tools {
                let _ = write!(label, "<br/>• {}", mermaid_text(tool));
            }
            let class = if agent.entry { ":::entry" } else { "" };
            let _ = writeln!(out, "  {}(\"{label}\"){class}", agent.node);
        }
        for arrow in &self.arrows {
            let _ = match arrow.condition {
                None => writeln!(out, "  {} --> {}", arrow.from, arrow.to),
                Some(path) => {
                    writeln!(out, "  {} -.->|\"if {}\"| {}", arrow.from, mermaid_text(path), arrow.to)
                }
            };
        }
        out.push_str("  classDef entry stroke-width:4px\n");
        out
    }

    fn dot(&self) -> String {
        let title = self.title.unwrap_or("agents");
        let mut out = format!("digraph \"{}\" {{\n", dot_text(title, Quoted::Plain));
        out.push_str("  rankdir=LR\n");
        out.push_str("  graph [fontname=\"Helvetica\" nodesep=0.4 ranksep=0.9]\n");
        out.push_str("  node [shape=Mrecord fontname=\"Helvetica\" fontsize=12]\n");
        out.push_str("  start [shape=point width=0.15 label=\"\"]\n");
        out.push_str("  edge [fontname=\"Helvetica\" fontsize=10]\n");
        for agent in &self.cards {
            let mut label = dot_text(agent.name, Quoted::Record);
            for detail in &agent.details {
                let _ = write!(label, "\\n{}", dot_text(detail, Quoted::Record));
            }
            if !agent.tools.is_empty() {
                label.push('|');
                for tool in &agent.tools {
                    let _ = write!(label, "{}\\l", dot_text(tool, Quoted::Record));
                }
            }
            let entry = if agent.entry { " penwidth=3" } else { "" };
            let _ = writeln!(out, "  {} [label=\"{label}\"{entry}]", agent.node);
            if agent.entry {
                let _ = writeln!(out, "  start -> {}", agent.node);
            }
        }
        for arrow in &self.arrows {
            let _ = match arrow.condition {
                None => writeln!(out, "  {} -> {}", arrow.from, arrow.to),
                Some(path) => {
                    let label = dot_text(path, Quoted::Plain);
                    writeln!(out, "  {} -> {} [style=dashed label=\"if {label}\"]", arrow.from, arrow.to)
                }
            };
        }
        out.push_str("}\n");
        out
    }
}

impl<'g> Card<'g> {
    fn of(agent: &'g Agent, graph: &Graph, entry: bool) -> Self {
        let id = Some(agent.id()).filter(|id| !id.eq_ignore_ascii_case(agent.name()));
        let model = agent.model().and_then(Value::as_str);
        let mut seen = HashSet::new();
        let tools = agent.tools().iter().map(|tool| &*tool.id).filter(|id| seen.insert(*id)).collect();
        Self {
            node: node(graph, agent.id()),
            name: agent.name(),
            details: id.into_iter().chain(model).collect(),
            tools,
            entry,
        }
    }
}

/// The name of an agent's node: its id where both languages take it, or else its number.
///
/// The two never meet, because no such id begins with a digit.
fn node(graph: &Graph, id: &str) -> String {
    let safe = id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if safe {
        return format!("agent_{id}");
    }
    let number = graph.agents().position(|agent| agent.id() == id).unwrap_or_default();
    format!("agent_{}", number + 1)
}

/// The characters that are shown, without control characters; line ends are `\n`.
fn shown(text: &str) -> impl Iterator<Item = char> {
    let cut = text.char_indices().nth(LONGEST).map_or(text, |(at, _)| text.get(..at).unwrap_or(text));
    let rest = if cut.len() < text.len() { "…" } else { "" };
    cut.trim().chars().chain(rest.chars()).map(|c| match c {
        '\n' => c,
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    })
}

const ZERO_WIDTH_SPACE: &str = "#8203;";

/// Escapes a text for a quoted Mermaid label.
///
/// Mermaid reads such a label as Markdown and HTML, and looks for directives and icons in it, so
/// punctuation is written as entities, except inside or at the end of a word.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = shown(text).peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let in_word = before.is_alphanumeric() && next.is_alphanumeric();
        match c {
            '\n' => out.push_str("<br/>"),
            ' ' if before == ' ' => {}
            c if !c.is_ascii_punctuation() || c == ',' => out.push(c),
            '_' | '-' | '.' | '/' | '\'' if in_word => out.push(c),
            c => {
                let _ = write!(out, "#{};", u32::from(c));
                // Formulas (`$$`) and icons (`fa:fa-car`) are looked for when entities are gone.
                if c == '$' || c == ':' && next == 'f' {
                    out.push_str(ZERO_WIDTH_SPACE);
                }
            }
        }
        before = c;
    }
    out
}

/// Position of a text in Graphviz's language.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Plain,
    /// In the label of a record, whose parts are marked by further characters.
    Record,
}

fn dot_text(text: &str, quoted: Quoted) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text) {
        match c {
            '\n' => out.push_str("\\n"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '{' | '}' | '|' | '<' | '>' if quoted == Quoted::Record => {
                out.push('\\');
                out.push(c);
            }
            // Labels may hold HTML entities.
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}
