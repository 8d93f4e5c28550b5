//! How a plan looks in the view.

use super::super::text::{cut, fenced, units};
use super::super::tree::Tree;
use super::state::{PlanOptions, PlanPhase, PlanState, PlanStyle};

/// UTF-16 units that a block which is cut keeps at least; below, it is left out.
const LEAST_LEFT: usize = 400;

const CUT: &str = "\n[cut off]";

const SHORT: &str = "<plan_mode>Plan mode is on. Change nothing: read, ask and plan only. Leave it with \
    exitPlanMode.</plan_mode>";

/// A part of what is shown.
struct Piece {
    /// Tag; a block without one is a rule.
    tag: Option<&'static str>,
    body: String,
}

impl Piece {
    fn text(&self) -> String {
        self.tag.map_or_else(|| self.body.clone(), |tag| fenced(tag, &self.body))
    }
}

/// Text of a plan in at most `most` UTF-16 units; `None` shows nothing.
pub(super) fn shown(state: &PlanState, options: &PlanOptions, allowed: &str, most: usize) -> Option<String> {
    let (pieces, short) = match state.phase {
        PlanPhase::Idle => return None,
        PlanPhase::Planning => (briefing(state, options, allowed), Some(SHORT)),
        PlanPhase::Executing => (approved(state), None),
        PlanPhase::Completed | PlanPhase::Failed => {
            let line = outcome(state);
            return (units(&line) <= most).then_some(line);
        }
    };
    let fitting = fitted(pieces, most);
    fitting.or_else(|| short.filter(|short| units(short) <= most).map(str::to_owned))
}

fn outcome(state: &PlanState) -> String {
    format!("<plan_outcome>Plan v{} {}.</plan_outcome>", state.version, state.phase)
}

fn briefing(state: &PlanState, options: &PlanOptions, allowed: &str) -> Vec<Piece> {
    let style = match options.style {
        PlanStyle::Phased => {
            "Work in phases: first understand the request and the current state, then decide how to do it, \
             then write the plan down."
        }
        PlanStyle::Interview => {
            "Interview the user: ask one question at a time, write down what each answer settles, and continue until \
             nothing is open."
        }
    };
    let more =
        options.additional_plan_instructions.as_deref().map_or(String::new(), |more| format!("\n{more}"));
    let rules = format!(
        "Plan mode is on: change nothing, read, ask and plan only. Tools that may change something are denied, \
         except: {allowed}.\n\
         {style}\n\
         Write what is wanted with updatePrd, the steps with setPlanTree and setWorkflow, and then call \
         exitPlanMode with action \"execute\", which asks for approval, or \"cancel\".{more}"
    );
    let mut pieces = vec![Piece { tag: None, body: fenced("plan_mode", &rules) }];
    pieces.extend(state_pieces(state));
    pieces
}

fn approved(state: &PlanState) -> Vec<Piece> {
    let rules = format!(
        "Plan v{} was approved. Carry it out step by step, and say when you depart from it.",
        state.version
    );
    let mut pieces = vec![Piece { tag: None, body: fenced("plan", &rules) }];
    pieces.extend(state_pieces(state));
    pieces
}

fn state_pieces(state: &PlanState) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(prd) = &state.prd {
        pieces.push(Piece { tag: Some("plan_prd"), body: prd.trim_end().to_owned() });
    }
    if let Some(tree) = &state.plan_tree {
        pieces.push(Piece { tag: Some("plan_tree"), body: Tree::of(tree).pretty() });
    }
    if !state.workflows.is_empty() {
        let each = state.workflows.iter().map(|w| format!("{}: {}", w.name, w.document.text()));
        pieces.push(Piece { tag: Some("plan_workflows"), body: each.collect::<Vec<_>>().join("\n") });
    }
    pieces
}

/// Blocks in at most `most` units: while they are longer, the largest block that is not a rule is cut or omitted.
/// `None` when the rules alone are longer.
fn fitted(mut pieces: Vec<Piece>, most: usize) -> Option<String> {
    loop {
        let text = pieces.iter().map(Piece::text).collect::<Vec<_>>().join("\n");
        let excess = units(&text).saturating_sub(most);
        if excess == 0 {
            return Some(text);
        }
        let droppable = pieces.iter().enumerate().filter(|(_, piece)| piece.tag.is_some());
        let (at, _) = droppable.max_by_key(|(_, piece)| units(&piece.body))?;
        let left = units(&pieces.get(at)?.body).saturating_sub(excess + units(CUT));
        if left < LEAST_LEFT {
            pieces.remove(at);
        } else if let Some(piece) = pieces.get_mut(at) {
            piece.body = format!("{}{CUT}", cut(&piece.body, left));
        }
    }
}
