//! Instructions for the model at the moment they help.

use std::collections::{BTreeMap, BTreeSet};

use harness_core::ToolName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts of a run that conditions look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Number of the turn, starting at 1.
    pub turn: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Number of calls in this run, by tool.
    pub calls: BTreeMap<ToolName, u64>,
    /// Number of work items that are done or skipped.
    pub items_complete: usize,
    /// Number of work items.
    pub items: usize,
    /// Number of compactions of view or transcript.
    pub compactions: u64,
}

/// Condition of an instruction: every part that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Condition {
    /// First turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// First turn as a share of the maximum, from 0 to 1, rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_turns: Option<f64>,
    /// Minimum number of compactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compactions: Option<u64>,
    /// Minimum number of calls, by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub called: BTreeMap<ToolName, u64>,
    /// Tools without a call.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub never_called: BTreeSet<ToolName>,
    /// Some work items are incomplete.
    pub items_left: bool,
    /// There are work items, and none is complete.
    pub no_item_complete: bool,
}

impl Condition {
    /// Whether the condition holds.
    fn holds(&self, now: &RunFacts) -> bool {
        let calls = |tool: &ToolName| now.calls.get(tool).copied().unwrap_or(0);
        self.turn.is_none_or(|turn| now.turn >= turn)
            && self.share_of_turns.is_none_or(|share| now.turn >= at_share(share, now.max_turns))
            && self.compactions.is_none_or(|least| now.compactions >= least)
            && self.called.iter().all(|(tool, least)| calls(tool) >= *least)
            && self.never_called.iter().all(|tool| calls(tool) == 0)
            && (!self.items_left || now.items_complete < now.items)
            && (!self.no_item_complete || (now.items > 0 && now.items_complete == 0))
    }

    /// Tools that the condition mentions.
    fn tools(&self) -> impl Iterator<Item = &ToolName> {
        self.called.keys().chain(&self.never_called)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of some turns is a small whole number"
)]
fn at_share(share: f64, turns: u32) -> u32 {
    (f64::from(turns) * share.clamp(0.0, 1.0)).floor() as u32
}

/// Instruction that the model receives when its condition holds.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use harness_control::{Instruction, RunFacts};
///
/// let (list, mut sent) = (Instruction::standard(), BTreeSet::new());
/// let now = RunFacts { turn: 8, max_turns: 10, ..RunFacts::default() };
/// let due = Instruction::due(&list, &mut sent, &now, |_| true);
/// assert_eq!(due[0].id, "approaching_turn_limit");
/// assert!(Instruction::due(&list, &mut sent, &now, |_| true).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Instruction {
    /// Id of the instruction.
    pub id: String,
    /// Text for the model.
    pub text: String,
    /// Condition. Default always.
    #[serde(default)]
    pub when: Condition,
    /// Whether it is sent each time the condition holds. Default once per run.
    #[serde(default)]
    pub again: bool,
}

impl Instruction {
    /// Creates an instruction that is sent once.
    pub fn new(id: impl Into<String>, text: impl Into<String>, when: Condition) -> Self {
        Self { id: id.into(), text: text.into(), when, again: false }
    }

    /// Instructions for every run: near its turn limit, and after compactions.
    pub fn standard() -> Vec<Self> {
        vec![near_the_limit(), after_compaction(), after_compactions()]
    }

    /// Seven instructions for agents with the tools `read_file`, `write_file` and `explore`.
    pub fn for_files() -> Vec<Self> {
        let read = || ToolName::from("read_file");
        let when = |turn: u32| Condition { turn: Some(turn), ..Condition::default() };
        vec![
            Self::new(
                "no_reads_after_3_turns",
                "You have not read any file yet. Look at the existing files before you continue.",
                Condition { never_called: [read()].into(), ..when(3) },
            ),
            Self::new(
                "serial_reads_suggest_parallel",
                "You read one file after another. Read several at once, or delegate the exploration.",
                Condition {
                    called: [(read(), 6)].into(),
                    never_called: ["explore".into()].into(),
                    ..when(4)
                },
            ),
            Self::new(
                "no_deliverable_after_many_reads",
                "You have read many files and written nothing. Start to write down results.",
                Condition {
                    called: [(read(), 5)].into(),
                    never_called: ["write_file".into()].into(),
                    items_left: true,
                    ..when(8)
                },
            ),
            near_the_limit(),
            Self::new(
                "all_planning_no_execution",
                "There is a plan, and none of it is done. Start with its first item.",
                Condition {
                    called: [("work_item_add".into(), 1)].into(),
                    never_called: [read()].into(),
                    no_item_complete: true,
                    ..when(3)
                },
            ),
            after_compaction(),
            after_compactions(),
        ]
    }

    /// Selects the instructions to send now, in order, and adds those sent once to `sent`.
    ///
    /// An instruction whose condition mentions only tools that are not offered is never sent.
    pub fn due<'a>(
        list: &'a [Self],
        sent: &mut BTreeSet<String>,
        now: &RunFacts,
        is_offered: impl Fn(&ToolName) -> bool,
    ) -> Vec<&'a Self> {
        let due = list.iter().filter(|instruction| {
            // A tool that must not have been called may be absent; one that was called is offered.
            let mut tools = instruction.when.tools().peekable();
            let is_possible = tools.peek().is_none() || tools.any(&is_offered);
            is_possible
                && (instruction.again || !sent.contains(&instruction.id))
                && instruction.when.holds(now)
                && (instruction.again || sent.insert(instruction.id.clone()))
        });
        due.collect()
    }
}

fn near_the_limit() -> Instruction {
    Instruction::new(
        "approaching_turn_limit",
        "Few turns are left. Finish the most important work, and store results now.",
        Condition { share_of_turns: Some(0.8), ..Condition::default() },
    )
}

fn after_compaction() -> Instruction {
    Instruction::new(
        "post_compaction_guidance",
        "Earlier parts of this conversation were shortened. Look up what you need from them instead of guessing.",
        Condition { compactions: Some(1), ..Condition::default() },
    )
}

fn after_compactions() -> Instruction {
    Instruction::new(
        "repeated_compaction_warning",
        "This conversation was shortened more than once. Store results as you work, and keep tool results small.",
        Condition { compactions: Some(2), ..Condition::default() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(turn: u32, calls: &[(&str, u64)]) -> RunFacts {
        RunFacts {
            turn,
            max_turns: 10,
            calls: calls.iter().map(|(tool, count)| ((*tool).into(), *count)).collect(),
            ..RunFacts::default()
        }
    }

    /// The instructions that are sent in each of some turns.
    #[track_caller]
    fn check(list: &[Instruction], offered: Option<&[&str]>, turns: &[RunFacts], expected: &[&[&str]]) {
        let mut sent = BTreeSet::new();
        let is_offered = |tool: &ToolName| offered.is_none_or(|offered| offered.contains(&tool.as_str()));
        let due = |now| Instruction::due(list, &mut sent, now, is_offered);
        let due: Vec<Vec<&str>> =
            turns.iter().map(due).map(|due| due.into_iter().map(|due| &*due.id).collect()).collect();
        assert_eq!(due, expected);
    }

    #[test]
    fn instruction_is_sent_once_when_its_condition_holds() {
        check(
            &Instruction::for_files(),
            None,
            &[at(2, &[]), at(3, &[]), at(4, &[]), at(8, &[])],
            &[&[], &["no_reads_after_3_turns"], &[], &["approaching_turn_limit"]],
        );
    }

    #[test]
    fn instruction_about_tools_that_are_not_offered_is_never_sent() {
        let list = Instruction::for_files();
        check(&list, Some(&["weather"]), &[at(5, &[])], &[&[]]);
        check(&list, Some(&["read_file"]), &[at(5, &[])], &[&["no_reads_after_3_turns"]]);
    }

    #[test]
    fn repeated_instruction_is_sent_each_time() {
        let once = Instruction::new("x", "y", Condition { turn: Some(2), ..Condition::default() });
        let again = Instruction { again: true, ..once };
        check(&[again], None, &[at(1, &[]), at(2, &[]), at(3, &[])], &[&[], &["x"], &["x"]]);
    }
}
