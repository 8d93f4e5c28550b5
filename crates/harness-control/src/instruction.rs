//! What to tell a run just when it is of use.

use std::collections::{BTreeMap, BTreeSet};

use harness_core::ToolName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run stands, for conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The turn, from 1.
    pub turn: u32,
    /// Turns at most.
    pub max_turns: u32,
    /// How often each tool was called in this run.
    pub calls: BTreeMap<ToolName, u64>,
    /// Work items that are done or skipped.
    pub items_complete: usize,
    /// All work items.
    pub items: usize,
    /// How often the view or the transcript was made shorter.
    pub compactions: u64,
}

/// When something is told: when everything that is set holds. Plain data, so that a configuration may hold
/// it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct When {
    /// From this turn on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// From this share of the turns on, 0 to 1; the turn is rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_turns: Option<f64>,
    /// From so many compactions on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compactions: Option<u64>,
    /// Tools that were called so often at least.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub called: BTreeMap<ToolName, u64>,
    /// Tools that were never called.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub never_called: BTreeSet<ToolName>,
    /// There are work items, and some are left.
    pub items_left: bool,
    /// There are work items, and none is complete.
    pub no_item_complete: bool,
}

impl When {
    /// Whether it holds.
    pub(crate) fn holds(&self, now: &Standing) -> bool {
        let calls = |tool: &ToolName| now.calls.get(tool).copied().unwrap_or(0);
        self.turn.is_none_or(|turn| now.turn >= turn)
            && self.share_of_turns.is_none_or(|share| now.turn >= at_share(share, now.max_turns))
            && self.compactions.is_none_or(|least| now.compactions >= least)
            && self.called.iter().all(|(tool, least)| calls(tool) >= *least)
            && self.never_called.iter().all(|tool| calls(tool) == 0)
            && (!self.items_left || now.items_complete < now.items)
            && (!self.no_item_complete || (now.items > 0 && now.items_complete == 0))
    }

    /// The tools that it speaks of.
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

/// Something to tell a run at the right time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Instruction {
    /// Its name.
    pub id: String,
    /// What the model is told.
    pub text: String,
    /// When.
    #[serde(default)]
    pub when: When,
    /// Whether it is told again each time that it holds. Default once in a run.
    #[serde(default)]
    pub again: bool,
}

impl Instruction {
    /// Tells `text` once, when `when` holds.
    pub fn new(id: impl Into<String>, text: impl Into<String>, when: When) -> Self {
        Self { id: id.into(), text: text.into(), when, again: false }
    }
}

/// Just-in-time instructions in their order, and which of them a run was told.
///
/// An instruction whose condition speaks of a tool that is not offered is never told: an agent without
/// files is not asked to read some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instructions {
    list: Vec<Instruction>,
    told: BTreeSet<String>,
}

impl Instructions {
    /// These, in this order.
    pub fn new(list: impl IntoIterator<Item = Instruction>) -> Self {
        Self { list: list.into_iter().collect(), told: BTreeSet::new() }
    }

    /// The instructions, in their order.
    pub(crate) fn into_list(self) -> Vec<Instruction> {
        self.list
    }

    /// What helps any run: near its limit, and after compactions.
    pub fn standard() -> Self {
        Self::new([near_the_limit(), after_compaction(), after_compactions()])
    }

    /// Seven instructions for agents with the tools `read_file`, `write_file` and `explore`.
    pub fn with_files() -> Self {
        let read = || ToolName::from("read_file");
        let when = |turn: u32| When { turn: Some(turn), ..When::default() };
        Self::new([
            Instruction::new(
                "no_reads_after_3_turns",
                "You have not read any file yet. Look at what there is before you go on.",
                When { never_called: [read()].into(), ..when(3) },
            ),
            Instruction::new(
                "serial_reads_suggest_parallel",
                "You read one file after another. Read several at once, or have them explored for you.",
                When { called: [(read(), 6)].into(), never_called: ["explore".into()].into(), ..when(4) },
            ),
            Instruction::new(
                "no_deliverable_after_many_reads",
                "You have read a lot and written nothing. Begin to write down results.",
                When {
                    called: [(read(), 5)].into(),
                    never_called: ["write_file".into()].into(),
                    items_left: true,
                    ..when(8)
                },
            ),
            near_the_limit(),
            Instruction::new(
                "all_planning_no_execution",
                "There is a plan, and nothing of it is done. Begin with its first item.",
                When {
                    called: [("work_item_add".into(), 1)].into(),
                    never_called: [read()].into(),
                    no_item_complete: true,
                    ..when(3)
                },
            ),
            after_compaction(),
            after_compactions(),
        ])
    }

    /// The instructions to tell now, in order; each that is told only once is then done with. `offered` says
    /// which tools the model has; `None` when everything is there.
    pub fn due(&mut self, now: &Standing, offered: Option<&BTreeSet<ToolName>>) -> Vec<&Instruction> {
        let told = &mut self.told;
        due(&self.list, told, now, |tool| offered.is_none_or(|offered| offered.contains(tool)))
    }
}

/// The instructions of `list` to tell now, in order; those told only once are noted in `told`.
pub(super) fn due<'a>(
    list: &'a [Instruction],
    told: &mut BTreeSet<String>,
    now: &Standing,
    is_offered: impl Fn(&ToolName) -> bool,
) -> Vec<&'a Instruction> {
    let due = list.iter().filter(|instruction| {
        // A tool that must not have been called need not be there; one that was called is.
        let is_possible =
            instruction.when.tools().any(&is_offered) || instruction.when.tools().next().is_none();
        is_possible
            && (instruction.again || !told.contains(&instruction.id))
            && instruction.when.holds(now)
            && (instruction.again || told.insert(instruction.id.clone()))
    });
    due.collect()
}

fn near_the_limit() -> Instruction {
    Instruction::new(
        "approaching_turn_limit",
        "Few turns are left. Finish what is most important, and store results now.",
        When { share_of_turns: Some(0.8), ..When::default() },
    )
}

fn after_compaction() -> Instruction {
    Instruction::new(
        "post_compaction_guidance",
        "Earlier parts of this conversation were shortened. What you need from them again, look up instead of \
         guessing.",
        When { compactions: Some(1), ..When::default() },
    )
}

fn after_compactions() -> Instruction {
    Instruction::new(
        "repeated_compaction_warning",
        "This conversation was shortened more than once. Store results as you go, and keep answers of tools \
         small.",
        When { compactions: Some(2), ..When::default() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(turn: u32, calls: &[(&str, u64)]) -> Standing {
        Standing {
            turn,
            max_turns: 10,
            calls: calls.iter().map(|(tool, count)| ((*tool).into(), *count)).collect(),
            ..Standing::default()
        }
    }

    /// What is told in each of some turns.
    #[track_caller]
    fn check(
        mut instructions: Instructions,
        offered: Option<&[&str]>,
        turns: &[Standing],
        expected: &[&[&str]],
    ) {
        let offered: Option<BTreeSet<ToolName>> =
            offered.map(|tools| tools.iter().map(|tool| (*tool).into()).collect());
        let told: Vec<Vec<String>> = turns
            .iter()
            .map(|now| {
                instructions.due(now, offered.as_ref()).into_iter().map(|due| due.id.clone()).collect()
            })
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn an_instruction_is_told_once_when_its_time_has_come() {
        check(
            Instructions::with_files(),
            None,
            &[at(2, &[]), at(3, &[]), at(4, &[]), at(8, &[])],
            &[&[], &["no_reads_after_3_turns"], &[], &["approaching_turn_limit"]],
        );
    }

    #[test]
    fn an_instruction_about_tools_that_are_not_there_is_never_told() {
        check(Instructions::with_files(), Some(&["weather"]), &[at(5, &[])], &[&[]]);
        check(
            Instructions::with_files(),
            Some(&["read_file"]),
            &[at(5, &[])],
            &[&["no_reads_after_3_turns"]],
        );
    }

    #[test]
    fn one_that_is_told_again_is_told_each_time() {
        let once = Instruction::new("x", "y", When { turn: Some(2), ..When::default() });
        let again = Instruction { again: true, ..once };
        check(
            Instructions::new([again]),
            None,
            &[at(1, &[]), at(2, &[]), at(3, &[])],
            &[&[], &["x"], &["x"]],
        );
    }

    #[test]
    fn what_was_told_survives_being_stored() {
        let mut instructions = Instructions::standard();
        assert_eq!(instructions.due(&at(9, &[]), None).len(), 1);
        let stored = serde_json::to_string(&instructions).expect("JSON");
        let mut restored: Instructions = serde_json::from_str(&stored).expect("instructions");
        assert_eq!(restored, instructions);
        assert_eq!(restored.due(&at(10, &[]), None).len(), 0);
    }
}
