//! A limit that stopped a run, with its unit and its option.

use harness::core::Millis;
use harness::core::limits::{Limit, Reached};
use harness::core::message::Cost;

/// `token limit 30 (--max-tokens): 25 used, the next call needs about 12`
pub(crate) fn stopped(reached: &Reached) -> String {
    let Reached { limit, value, ceiling, needs, .. } = *reached;
    let counted = |what: &str, option: &str| {
        let needs = needs.map(|needs| format!(", the next call needs about {needs}")).unwrap_or_default();
        format!("stopped: {what} limit {ceiling} ({option}): {value} used{needs}")
    };
    match limit {
        Limit::Iterations => counted("iteration", "--max-iterations"),
        Limit::ToolCalls => counted("tool call", "--max-tool-calls"),
        Limit::Turns => counted("turn", "--max-turns"),
        Limit::Tokens => counted("token", "--max-tokens"),
        Limit::Elapsed => format!("stopped: time limit of {} (--timeout)", span(Millis(ceiling))),
        Limit::Cost => {
            let needs = needs.map(|needs| format!(", the next call needs about {}", Cost(needs)));
            let (ceiling, value, needs) = (Cost(ceiling), Cost(value), needs.unwrap_or_default());
            format!("stopped: cost limit {ceiling} (--max-cost): {value} used{needs}")
        }
        Limit::Context => {
            format!("stopped: context window of {ceiling} tokens: the request has about {value}")
        }
        _ => format!("stopped: limit of {limit} {ceiling}: {value} used"),
    }
}

/// `3 s`, `2.5 s`, `90 s`, `5 min`, `1 h`
fn span(time: Millis) -> String {
    match time.0 {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms if ms % 3_600_000 == 0 => format!("{} h", ms / 3_600_000),
        ms if ms >= 120_000 && ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: Limit, value: u64, ceiling: u64, needs: Option<u64>, text: &str) {
        let mut reached = Reached::new(limit, value, ceiling);
        reached.needs = needs;
        assert_eq!(stopped(&reached), text);
    }

    #[test]
    fn fault_18_a_limit_has_its_unit_and_its_option() {
        let text = "stopped: token limit 30 (--max-tokens): 25 used, the next call needs about 12";
        check(Limit::Tokens, 25, 30, Some(12), text);
        check(Limit::Tokens, 31, 30, None, "stopped: token limit 30 (--max-tokens): 31 used");
        check(Limit::Elapsed, 3_001, 3_000, None, "stopped: time limit of 3 s (--timeout)");
        check(Limit::Elapsed, 2_501, 2_500, None, "stopped: time limit of 2.5 s (--timeout)");
        check(Limit::Elapsed, 300_001, 300_000, None, "stopped: time limit of 5 min (--timeout)");
        let text = "stopped: cost limit 0.25 (--max-cost): 0.2 used, the next call needs about 0.1";
        check(Limit::Cost, 200_000_000, 250_000_000, Some(100_000_000), text);
        check(Limit::ToolCalls, 0, 0, None, "stopped: tool call limit 0 (--max-tool-calls): 0 used");
        check(Limit::Turns, 2, 2, None, "stopped: turn limit 2 (--max-turns): 2 used");
        check(Limit::Iterations, 2, 2, None, "stopped: iteration limit 2 (--max-iterations): 2 used");
    }
}
