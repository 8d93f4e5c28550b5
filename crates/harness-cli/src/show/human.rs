//! Human-readable preview of an agent.

use std::fmt::Write as _;

use harness::descriptor::{HandoffPreview, PartPreview, Preview, Standing};

use crate::render::{BAD, BOLD, DIM, NOTE, harmless, one_line};

/// The preview as lines with styles.
pub(super) fn text(preview: &Preview<'_>) -> String {
    let mut out = String::new();
    head(&mut out, preview);
    instructions(&mut out, preview);
    tools(&mut out, preview);
    handoffs(&mut out, preview);
    out
}

fn head(out: &mut String, preview: &Preview<'_>) {
    let agent = preview.agent;
    let name =
        if agent.name() == agent.id() { String::new() } else { format!(" · {}", one_line(agent.name())) };
    let _ = writeln!(out, "{BOLD}{}{BOLD:#}{name}", one_line(agent.id()));
    if let Ok(resolved) = &preview.resolved {
        let settings =
            resolved.model_settings.as_ref().map(|settings| format!(" {}", one_line(&settings.to_string())));
        let _ =
            writeln!(out, "model {}{DIM}{}{DIM:#}", one_line(&resolved.model), settings.unwrap_or_default());
    }
}

fn heading(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{BOLD}{text}{BOLD:#}");
}

fn instructions(out: &mut String, preview: &Preview<'_>) {
    if let Ok(resolved) = &preview.resolved {
        match resolved.instructions.as_deref() {
            None => heading(out, "no instructions"),
            Some(text) => {
                heading(out, "instructions");
                // A bar, so that blank lines and spaces can be seen.
                for line in harmless(text).lines() {
                    let _ = writeln!(out, "{DIM}│{DIM:#} {line}");
                }
            }
        }
    }
    let count = preview.parts.len();
    let absent =
        preview.parts.iter().enumerate().filter(|(_, part)| !matches!(part.standing, Standing::Open));
    for (at, (index, part)) in absent.enumerate() {
        if at == 0 {
            heading(out, "omitted parts");
        }
        let _ = writeln!(out, "{DIM}{} of {count}{DIM:#}  {}", index + 1, why(&part.standing));
        let _ = writeln!(out, "        {DIM}{}{DIM:#}", opening(part));
    }
}

/// How the text of a part begins.
fn opening(part: &PartPreview<'_>) -> String {
    let mut lines = part.part.template().source().trim().lines();
    let first = one_line(lines.next().unwrap_or_default());
    if lines.next().is_some() { format!("{first} …") } else { first }
}

fn tools(out: &mut String, preview: &Preview<'_>) {
    let tools = preview.agent.tools();
    if tools.is_empty() {
        return heading(out, "no tools");
    }
    heading(out, "tools");
    for tool in tools {
        let id = if tool.id == tool.name { String::new() } else { format!("{} = ", tool.id) };
        let _ = writeln!(
            out,
            "{} {DIM}({}{}){DIM:#}",
            one_line(&tool.name),
            one_line(&id),
            one_line(&tool.target)
        );
        if !tool.description.is_empty() {
            let _ = writeln!(out, "        {}", one_line(&tool.description));
        }
    }
}

fn handoffs(out: &mut String, preview: &Preview<'_>) {
    if preview.handoffs.is_empty() {
        return heading(out, "no handoffs");
    }
    heading(out, "handoffs");
    for handoff in &preview.handoffs {
        let name = one_line(handoff.handoff.tool_name());
        let _ = if matches!(handoff.standing, Standing::Open) {
            writeln!(out, "{name}{}", because(handoff))
        } else {
            writeln!(out, "{DIM}{name}{DIM:#}  {}", why(&handoff.standing))
        };
        let resolved = preview.resolved.as_ref().ok().filter(|_| matches!(handoff.standing, Standing::Open));
        let open = resolved
            .and_then(|resolved| resolved.handoffs.iter().find(|open| *open.to == *handoff.handoff.to()));
        if let Some(open) = open {
            let _ = writeln!(out, "        {}", one_line(&open.description));
        }
    }
}

/// Which gate let a handoff through.
fn because(handoff: &HandoffPreview<'_>) -> String {
    let gate = handoff.handoff.gate();
    gate.map(|path| format!("  {DIM}{path} is true{DIM:#}")).unwrap_or_default()
}

/// Reason why a part is unavailable; empty if it is available.
fn why(standing: &Standing) -> String {
    match standing {
        Standing::Open => String::new(),
        Standing::Closed { path } => format!("{NOTE}closed{NOTE:#}: {path} is false"),
        Standing::Repeated => format!("{NOTE}omitted{NOTE:#}: an earlier handoff has the same target"),
        Standing::Faulty(fault) => format!("{BAD}error{BAD:#}: {}", one_line(&fault.to_string())),
        other => other.name().to_owned(),
    }
}
