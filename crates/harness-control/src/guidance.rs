//! Guidance at the end of a request: work items, instructions, limits and environment.

use std::sync::Arc;

use harness_core::ToolName;
use harness_core::message::{Message, UserMessage};
use harness_core::port::{RunProgress, Used};

use super::instruction::{Instruction, RunFacts};
use super::spec::{ControlSpec, GuidanceSection, GuidanceSpec};
use super::state::ControlState;

/// Estimated characters per token.
const CHARACTERS: usize = 4;

/// Guidance of one request.
pub(super) struct Guidance {
    /// Message at the end of the request.
    pub(super) message: Arc<Message>,
    /// Ids of its sections; instructions are `instructions.ID`.
    pub(super) sections: Vec<String>,
    /// Estimated tokens.
    pub(super) tokens: u64,
}

impl ControlState {
    /// Builds the guidance of the next request; `None` when there is none.
    pub(super) fn guidance(&mut self, spec: &ControlSpec, moment: &RunProgress) -> Option<Guidance> {
        let settings = &spec.guidance;
        let mut tail = Tail::new(settings);
        if settings.has(GuidanceSection::Items)
            && let Some(text) = self.items_text(spec)
        {
            tail.add("items".to_owned(), &text);
        }
        if settings.has(GuidanceSection::Instructions) {
            for (id, text) in self.due_instructions(settings, moment) {
                tail.add(format!("instructions.{id}"), text);
            }
        }
        if settings.has(GuidanceSection::Budget)
            && let Some(text) = budget_text(settings, moment)
        {
            tail.add("budget".to_owned(), &text);
        }
        if settings.has(GuidanceSection::Environment)
            && let Some(text) = &settings.environment
        {
            tail.add("environment".to_owned(), settings.text("environment", text));
        }
        tail.finish()
    }

    fn items_text(&self, spec: &ControlSpec) -> Option<String> {
        spec.work.as_ref()?;
        let open: Vec<_> = self.ledger.incomplete().collect();
        if open.is_empty() {
            return None;
        }
        let default = format!("{} of {} work items are open:", open.len(), self.ledger.items().len());
        let mut text = spec.guidance.text("items", &default).to_owned();
        super::words::open_items(&mut text, spec, &open);
        Some(text)
    }

    fn due_instructions<'a>(
        &mut self,
        settings: &'a GuidanceSpec,
        moment: &RunProgress,
    ) -> Vec<(&'a str, &'a str)> {
        if settings.instructions.is_empty() {
            return Vec::new();
        }
        let items = self.ledger.items();
        let now = RunFacts {
            turn: moment.turn,
            max_turns: moment.max_turns,
            calls: self.usage.clone(),
            items_complete: items.iter().filter(|item| item.status.is_closed()).count(),
            items: items.len(),
            compactions: moment.compactions,
        };
        let offered = |tool: &ToolName| {
            let tools = moment.prepared.iter().flat_map(|prepared| prepared.tools.iter());
            tools.into_iter().any(|def| def.name == *tool)
        };
        let due = Instruction::due(&settings.instructions, &mut self.sent, &now, offered);
        due.into_iter().map(|instruction| (instruction.id.as_str(), instruction.text.as_str())).collect()
    }
}

fn budget_text(settings: &GuidanceSpec, moment: &RunProgress) -> Option<String> {
    let near: Vec<_> = moment
        .used
        .iter()
        .filter(|used| is_from(used, settings.budget_from))
        .map(|used| format!("{} of {} {}", used.used, used.most, used.what))
        .collect();
    if near.is_empty() {
        return None;
    }
    let default = "The budget is almost used up: finish and store the most important results. Used so far:";
    let mut text = settings.text("budget", default).to_owned();
    super::words::list(&mut text, &near, near.len());
    Some(text)
}

/// Whether at least `share` of a limit is used.
#[expect(clippy::cast_precision_loss, reason = "a share of a limit needs no last digit")]
fn is_from(used: &Used, share: f64) -> bool {
    used.most > 0 && used.used as f64 >= used.most as f64 * share
}

/// Guidance message under construction.
struct Tail {
    left: usize,
    text: String,
    sections: Vec<String>,
}

impl Tail {
    fn new(settings: &GuidanceSpec) -> Self {
        let most = usize::try_from(settings.tokens).unwrap_or(usize::MAX).saturating_mul(CHARACTERS);
        let marks = GuidanceSpec::MARKS.0.len() + GuidanceSpec::MARKS.1.len() + 1;
        Self { left: most.saturating_sub(marks), text: String::new(), sections: Vec::new() }
    }

    /// Adds the lines of a section that fit; without one, the section is omitted.
    fn add(&mut self, section: String, text: &str) {
        let mut added = String::new();
        for line in text.lines() {
            let size = line.chars().count() + 1;
            if size > self.left {
                break;
            }
            self.left -= size;
            added.push_str(line);
            added.push('\n');
        }
        if !added.is_empty() {
            self.text.push_str(&added);
            self.sections.push(section);
        }
    }

    fn finish(self) -> Option<Guidance> {
        if self.sections.is_empty() {
            return None;
        }
        let (open, close) = GuidanceSpec::MARKS;
        let text = format!("{open}\n{}{close}", self.text);
        let tokens = text.chars().count().div_ceil(CHARACTERS) as u64;
        let message = Arc::new(Message::User(UserMessage::text(text).from_origin("guidance")));
        Some(Guidance { message, sections: self.sections, tokens })
    }
}
