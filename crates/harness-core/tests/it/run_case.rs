//! Random scenarios of runs: turns as in `world`, under the plain control or under one that does everything that
//! one may do.

use std::sync::Arc;

use harness_core::machine::Machine;
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::StopMode;
use harness_core::port::{Checked, CheckedAs, Control, Review, RunNext, RunProgress, RunStop, TurnEnd};
use harness_core::run::{RunLimits, RunSpec, RunState};
use harness_core::testing::ScriptedDriver;
use harness_core::transcript::Transcript;
use harness_core::{Json, Origin, Outcome, StopReason};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::world::{Case, World, case};

/// A control that wants facts, guides, refuses and goes on as its dice say, which what it sees moves on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sampled {
    dice: u16,
    seen: u32,
    refuses: bool,
    told: u32,
}

impl Sampled {
    pub(crate) fn of(dice: u16) -> Self {
        Self { dice, seen: 0, refuses: false, told: 0 }
    }

    /// The next die below `sides`.
    fn die(&mut self, sides: u16) -> u16 {
        self.dice = self.dice.wrapping_mul(25_173).wrapping_add(13_849);
        (self.dice >> 4) % sides
    }

    fn check(&mut self) -> Vec<Checked> {
        let own = if self.refuses { CheckedAs::Refused } else { CheckedAs::Accepted };
        if self.die(2) == 0 {
            Vec::new()
        } else {
            vec![Checked { check: "own".into(), verdict: own, why: None }]
        }
    }
}

impl Control for Sampled {
    fn observe(&mut self, event: u64, message: &Message) {
        self.seen += 1;
        self.dice ^= u16::try_from((event + message.joined_text().len() as u64) % 97).unwrap_or(0);
    }

    fn guide(&mut self, at: &RunProgress) -> Option<Arc<Message>> {
        let is_little = self.die(3) > 0;
        let text = format!("turn {} of {}, {} messages", at.turn, at.max_turns, self.seen);
        is_little.then(|| Arc::new(Message::User(UserMessage::text(text).from_origin("guidance"))))
    }

    fn review(&mut self, turn: &TurnEnd<'_>, facts: Option<&Json>) -> Review {
        if facts.is_none() && self.die(3) == 0 {
            return Review::NeedsFacts(Json::empty_object());
        }
        if turn.end.outcome() != Outcome::Completed {
            return Review::NotDone;
        }
        self.refuses = facts.is_some_and(Json::is_null) || self.die(3) == 0;
        let own = self.check();
        if self.refuses { Review::Refused(own) } else { Review::Done { signalled: true, waives: false, own } }
    }

    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext {
        let refused = std::mem::take(&mut self.refuses)
            || checks.last().is_some_and(|check| check.verdict == CheckedAs::Refused);
        let goes_on = match turn.end.outcome() {
            Outcome::Completed => refused,
            Outcome::Deferred => self.die(2) == 0,
            _ => false,
        };
        if goes_on {
            let text = (self.die(2) == 0).then(|| "go on".to_owned());
            return RunNext::Continue(text);
        }
        let waived: Vec<_> = checks.iter().filter_map(Checked::waiver).collect();
        let stop = (!waived.is_empty()).then(|| StopReason::CompletionWaived.into());
        RunNext::Stop(RunStop { stop, waived, report: Some(Json::string("a report")), ..RunStop::default() })
    }

    fn take_events(&mut self) -> Vec<Json> {
        let new = u32::from(self.seen / 3 > self.told);
        self.told += new;
        (0..new).map(|_| Json::parse(r#"{"kind":"seen"}"#).expect("JSON")).collect()
    }

    fn save(&self) -> Json {
        Json::of(self).expect("JSON")
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        *self = saved.to()?;
        Ok(())
    }
}

/// A scenario of a run: its turns are like those of `turn`.
#[derive(Clone, Debug)]
pub(crate) struct RunCase {
    pub(crate) turn: Case,
    pub(crate) spec: RunSpec,
    /// Of a control that is not the plain one.
    pub(crate) control: Option<Sampled>,
}

pub(crate) fn run_case() -> impl Strategy<Value = RunCase> {
    let mode = prop_oneof![Just(StopMode::Interactive), Just(StopMode::StrictAutomation)];
    let control = prop_oneof![1 => Just(None), 1 => any::<u16>().prop_map(|dice| Some(Sampled::of(dice)))];
    (case(), mode, 1u32..4, 0u32..10, 0u32..12, 0u32..3, control).prop_map(
        |(turn, mode, turns, iterations, calls, nudges, control)| {
            let mut limits = RunLimits { turns, ..RunLimits::default() };
            (limits.amount.iterations, limits.amount.tool_calls) = (iterations, calls);
            let (turn_spec, compact_between_turns) = (turn.spec.clone(), nudges == 2);
            // Without a rest, so that a new setting fails to build here.
            let spec = RunSpec { turn: turn_spec, limits, mode, nudges, compact_between_turns };
            RunCase { turn, spec, control }
        },
    )
}

impl RunCase {
    pub(crate) fn machine(&self) -> Machine<RunState> {
        self.machine_over(Transcript::default())
    }

    pub(crate) fn machine_over(&self, log: Transcript) -> Machine<RunState> {
        let run = Machine::new(Arc::new(self.spec.clone()), Origin::default(), log)
            .with_ports(self.turn.ports.clone());
        match &self.control {
            Some(control) => run.with_control(Box::new(control.clone())),
            None => run,
        }
    }

    pub(crate) fn driver(&self) -> ScriptedDriver<RunState, World> {
        self.turn.driver_of(self.machine())
    }
}
