//! Progress line of a run of many turns.

use harness::control::ControlEvent;
use harness::core::event::{Event, EventKind};
use harness::core::outcome::{Purpose, TotalUsage};
use harness::core::run::{RunLimits, RunSpec};

/// Progress of a run: `turn 2 of 12 · 1 of 3 items · 64 % of the budget left`.
#[derive(Debug)]
pub(crate) struct Status {
    limits: RunLimits,
    turn: u32,
    closed: u64,
    items: u64,
    used: TotalUsage,
}

impl Status {
    /// A line for a run of many turns; shorter runs need none.
    pub(crate) fn of(spec: &RunSpec) -> Self {
        let (limits, used) = (spec.limits.clone(), TotalUsage::default());
        Self { limits, turn: 0, closed: 0, items: 0, used }
    }

    /// Handles an event; returns whether the line has changed.
    pub(super) fn see(&mut self, event: &Event) -> bool {
        if matches!(event.kind, EventKind::TurnStarted { .. }) {
            self.turn = event.turn;
        } else if self.used.count(&event.kind) {
            // What is left is another share.
        } else if let Some(ControlEvent::WorkItemsChanged { closed, total, .. }) =
            ControlEvent::of(&event.kind)
        {
            (self.closed, self.items) = (closed, total);
        } else {
            return false;
        }
        self.has_begun()
    }

    /// Whether there is progress to show.
    pub(super) fn has_begun(&self) -> bool {
        self.turn > 0
    }

    /// The progress on one line: turn, closed items and remaining budget.
    pub(super) fn line(&self) -> String {
        let items = if self.items > 0 {
            format!("{} of {} items · ", self.closed, self.items)
        } else {
            String::new()
        };
        format!("turn {} of {} · {items}{} % of the budget left", self.turn, self.limits.turns, self.left())
    }

    /// Remaining percentage of the nearest limit, rounded down.
    fn left(&self) -> u64 {
        let amount = &self.limits.amount;
        let spent = self.used.amount();
        let used = [
            (u64::from(self.used.of(Purpose::Answer).model_calls), u64::from(amount.iterations)),
            (u64::from(self.used.tool_calls), u64::from(amount.tool_calls)),
            (spent.tokens, amount.tokens),
            (spent.cost.0, amount.cost.0),
        ];
        let left = used.iter().filter(|(_, limit)| *limit > 0).map(|(used, limit)| {
            let share = u128::from(limit.saturating_sub(*used)) * 100 / u128::from(*limit);
            u64::try_from(share).unwrap_or(100)
        });
        left.min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(turn: u32, json: &str) -> Event {
        let (kind, fields) = json.split_once(' ').unwrap_or((json, ""));
        let line = format!(
            r#"{{"seq":0,"at":0,"type":"{kind}","turn":{turn},"iteration":0{fields},"origin":{{}}}}"#
        );
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[track_caller]
    fn check(events: &[(u32, &str)], expected: &str) {
        let mut spec = RunSpec::default();
        spec.limits.turns = 5;
        spec.limits.amount.iterations = 8;
        spec.limits.amount.tokens = 1_000;
        let mut status = Status::of(&spec);
        for (turn, json) in events {
            status.see(&event(*turn, json));
        }
        assert_eq!(status.line(), expected);
    }

    #[test]
    fn turns_items_and_the_nearest_limit_are_told() {
        let turn = (1, r#"turn_started ,"agent":"a","resumed":false"#);
        check(&[turn], "turn 1 of 5 · 100 % of the budget left");
        let step =
            (1, r#"model_step_finished ,"outputType":"text","durationMs":1,"usage":{"input":10,"output":5}"#);
        check(&[turn, step], "turn 1 of 5 · 87 % of the budget left");
        let long = (
            2,
            r#"model_step_finished ,"outputType":"text","durationMs":1,"usage":{"input":600,"output":5}"#,
        );
        let items = (
            2,
            r#"control ,"event":{"kind":"work_items_changed","changed":["00000001"],"closed":1,"total":3}"#,
        );
        check(&[turn, step, long, items], "turn 1 of 5 · 1 of 3 items · 38 % of the budget left");
    }
}
