//! What the model is told with one request: the state of the work, instructions of the moment, what is left
//! of the limits, where the run takes place.

use std::sync::Arc;

use harness_core::ToolName;
use harness_core::message::{Message, UserMessage};
use harness_core::port::{RunProgress, Used};

use super::instruction::{Standing, due};
use super::spec::{ControlSpec, GuidanceSection, GuidanceSpec};
use super::state::ControlState;

/// Characters of a token, by the rule of thumb.
const CHARACTERS: usize = 4;

/// The guidance of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guidance {
    /// The message, for the end of the request.
    pub message: Arc<Message>,
    /// Its parts; instructions as `instructions.ID`.
    pub sections: Vec<String>,
    /// About how many tokens it has.
    pub tokens: u64,
}

impl ControlState {
    /// What the model is told with the next request; `None` when there is nothing to tell. Instructions that
    /// are told only once are done with then.
    pub fn guidance(&mut self, spec: &ControlSpec, moment: &RunProgress) -> Option<Guidance> {
        let settings = &spec.guidance;
        let mut tail = Tail::new(settings);
        if settings.tells(GuidanceSection::Items)
            && let Some(text) = self.items_text(spec)
        {
            tail.add("items".to_owned(), &text);
        }
        if settings.tells(GuidanceSection::Instructions) {
            for (id, text) in self.due_instructions(settings, moment) {
                tail.add(format!("instructions.{id}"), text);
            }
        }
        if settings.tells(GuidanceSection::Budget)
            && let Some(text) = budget_text(settings, moment)
        {
            tail.add("budget".to_owned(), &text);
        }
        if settings.tells(GuidanceSection::Environment)
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
        let usual = format!("{} of {} work items are open:", open.len(), self.ledger.items().len());
        let mut text = spec.guidance.text("items", &usual).to_owned();
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
        let now = Standing {
            turn: moment.turn,
            max_turns: moment.max_turns,
            calls: self.usage().clone(),
            items_complete: items.iter().filter(|item| item.status.is_closed()).count(),
            items: items.len(),
            compactions: moment.compactions,
        };
        let offered = |tool: &ToolName| {
            let tools = moment.prepared.iter().flat_map(|prepared| prepared.tools.iter());
            tools.into_iter().any(|def| def.name == *tool)
        };
        let told = due(&settings.instructions, &mut self.told, &now, offered);
        told.into_iter().map(|instruction| (instruction.id.as_str(), instruction.text.as_str())).collect()
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
    let usual = "Little is left, so finish and store what matters most. Used so far:";
    let mut text = settings.text("budget", usual).to_owned();
    super::words::list(&mut text, &near, near.len());
    Some(text)
}

/// Whether at least this share is used.
#[expect(clippy::cast_precision_loss, reason = "a share of a limit needs no last digit")]
fn is_from(used: &Used, share: f64) -> bool {
    used.most > 0 && used.used as f64 >= used.most as f64 * share
}

/// The message while it is put together.
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

    /// Adds a part, or the first lines of it that fit. A part of which not even the first line fits is left
    /// out.
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
