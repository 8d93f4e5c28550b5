//! Budget of a view, and calls without results.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

/// How long a view may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ViewBudget {
    /// Tokens of a request and its answer. Default 128,000.
    pub tokens: u64,
    /// Tokens set aside for the answer. Default 4,000.
    pub response_reserve: u64,
    /// The history shows at most this many of its newest messages. Default: all that fit.
    pub window: Option<usize>,
}

impl Default for ViewBudget {
    fn default() -> Self {
        Self { tokens: 128_000, response_reserve: 4_000, window: None }
    }
}

impl ViewBudget {
    /// A request and its answer of so many tokens, with a reserve for the answer.
    pub fn new(tokens: u64, response_reserve: u64) -> Self {
        Self { tokens, response_reserve, window: None }
    }

    /// Tokens of the view itself.
    pub fn room(&self) -> u64 {
        self.tokens.saturating_sub(self.response_reserve)
    }
}

/// How a message hangs together with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// It stands alone.
    #[default]
    None,
    /// It asks for these calls.
    Calls(Vec<String>),
    /// It answers a call.
    Answers(String),
    /// Reasoning that led to the calls right after it.
    Reasoning,
}

/// Tokens that are left.
pub(crate) struct Room(pub(crate) u64);

impl Room {
    /// Takes them when there are as many.
    pub(crate) fn take(&mut self, tokens: u64) -> bool {
        let left = self.0.checked_sub(tokens);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Takes them all, down to nothing.
    pub(crate) fn take_all(&mut self, tokens: impl Iterator<Item = u64>) {
        self.0 = tokens.fold(self.0, u64::saturating_sub);
    }
}

/// The positions that remain when calls without results and results without calls are left out. A result
/// comes after its call; calls of one id are paired with results in order; reasoning goes with the calls
/// that it led to.
pub(crate) fn resolved(links: &[&Link]) -> Vec<usize> {
    let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
    // For each answer the position of its call; for each position how many calls wait for an answer.
    let mut asked_at: Vec<Option<usize>> = vec![None; links.len()];
    let mut waiting = vec![0_usize; links.len()];
    for (at, link) in links.iter().enumerate() {
        match link {
            Link::Calls(ids) => {
                for id in ids {
                    open.entry(id).or_default().push_back(at);
                }
                if let Some(count) = waiting.get_mut(at) {
                    *count = ids.len();
                }
            }
            Link::Answers(id) => {
                let call = open.get_mut(id.as_str()).and_then(VecDeque::pop_front);
                if let Some(count) = call.and_then(|call| waiting.get_mut(call)) {
                    *count -= 1;
                }
                if let Some(asked) = asked_at.get_mut(at) {
                    *asked = call;
                }
            }
            Link::None | Link::Reasoning => {}
        }
    }
    let is_answered = |at: usize| waiting.get(at) == Some(&0);
    let leads_to_kept = |at: usize| {
        let after =
            || links.iter().enumerate().skip(at + 1).skip_while(|(_, link)| ***link == Link::Reasoning);
        let mut calls = after().take_while(|(_, link)| matches!(link, Link::Calls(_))).peekable();
        calls.peek().is_none() || calls.any(|(at, _)| is_answered(at))
    };
    let stays = |at: usize| match links.get(at) {
        Some(Link::Calls(_)) => is_answered(at),
        Some(Link::Answers(_)) => asked_at.get(at).copied().flatten().is_some_and(is_answered),
        Some(Link::Reasoning) => leads_to_kept(at),
        Some(Link::None) => true,
        None => false,
    };
    (0..links.len()).filter(|at| stays(*at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(code: &str) -> Link {
        match code.split_once(':') {
            Some(("c", ids)) => Link::Calls(ids.split(',').map(str::to_owned).collect()),
            Some(("o", id)) => Link::Answers(id.to_owned()),
            Some(("r", _)) => Link::Reasoning,
            _ => Link::None,
        }
    }

    #[track_caller]
    fn check(history: &str, expected: &str) {
        let links: Vec<Link> = history.split(' ').map(link).collect();
        let kept = resolved(&links.iter().collect::<Vec<_>>());
        let shown: Vec<&str> =
            history.split(' ').enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, c)| c).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn calls_and_results_stay_only_together() {
        check("u c:1 o:1 a", "u c:1 o:1 a");
        check("o:1 a c:2", "a");
        check("c:1,2 o:1 u", "u");
        check("c:1,2 o:2 o:1", "c:1,2 o:2 o:1");
    }

    #[test]
    fn a_result_before_its_call_is_none() {
        check("o:1 c:1 u", "u");
    }

    #[test]
    fn calls_of_one_id_are_paired_in_order() {
        check("c:1 o:1 c:1 u", "c:1 o:1 u");
        check("c:1 o:1 o:1 u", "c:1 o:1 u");
        check("c:1 o:1 c:1 o:1", "c:1 o:1 c:1 o:1");
    }

    #[test]
    fn reasoning_goes_with_its_calls() {
        check("r: c:1 u", "u");
        check("r: r: c:1 c:2 o:2 u", "r: r: c:2 o:2 u");
        check("r: a c:1", "r: a");
    }
}
