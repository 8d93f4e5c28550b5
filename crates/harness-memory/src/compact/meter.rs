//! How long a request is: counts, overheads, and what providers say.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::message::{Message, Usage};
use harness_core::port::{Measured, PreparedAgent};
use harness_core::transcript::{Plan, Prefix, Span};

use super::tokens::{CharacterCounter, Tally, message_tokens, prepared_tokens};
use crate::compact::tokens::TokenCounter;

/// Tokens that begin the answer.
const REPLY: u64 = 3;
/// Requests over which the correction is smoothed.
const SMOOTHED: usize = 5;
/// Bounds of the correction, in thousandths.
const CLAMP: (u64, u64) = (500, 3_000);
/// Agents whose instructions and tools are remembered.
const OFFERS: usize = 16;

/// Estimates the tokens of the requests of one thread.
///
/// An estimate is `instructions and tools + messages + 4 per message + 3`, times a factor that follows what
/// providers report. Messages, instructions and tools are counted once. The factor is learned from single
/// requests, each against the view that *it* was sent: what a shortened request used never speaks for the
/// whole transcript, nor the other way round.
#[derive(Clone, derive_more::Debug)]
pub(crate) struct BudgetMeter {
    #[debug(skip)]
    counter: Arc<dyn TokenCounter>,
    #[debug(skip)]
    tally: Tally,
    agents: VecDeque<(Arc<PreparedAgent>, u64)>,
    factors: VecDeque<u64>,
    learned: Option<Measured>,
}

impl Default for BudgetMeter {
    /// Counts characters by script.
    fn default() -> Self {
        Self::new(Arc::new(CharacterCounter))
    }
}

impl BudgetMeter {
    /// A meter that has learned nothing yet.
    pub(crate) fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            counter,
            tally: Tally::new(message_tokens),
            agents: VecDeque::new(),
            factors: VecDeque::new(),
            learned: None,
        }
    }

    /// Tokens of a request that shows `plan` of `log` to the agent of `prepared`, as well as it is known.
    pub(crate) fn estimate(
        &mut self,
        log: &Prefix,
        plan: Option<&Plan>,
        prepared: Option<&Arc<PreparedAgent>>,
    ) -> u64 {
        let counted = self.counted(log, plan, prepared);
        self.corrected(counted)
    }

    /// Estimate before the correction.
    pub(crate) fn counted(
        &mut self,
        log: &Prefix,
        plan: Option<&Plan>,
        prepared: Option<&Arc<PreparedAgent>>,
    ) -> u64 {
        let shown = self.tally.shown(log, plan, &*self.counter);
        let overhead = prepared.map_or(0, |prepared| self.overhead(prepared));
        shown.saturating_add(overhead).saturating_add(REPLY)
    }

    /// Counted tokens as tokens of the provider.
    pub(crate) fn corrected(&self, counted: u64) -> u64 {
        counted.saturating_mul(self.factor()).div_ceil(1_000)
    }

    /// The correction in thousandths, 500 to 3,000; 1,000 before anything was learned.
    pub(crate) fn factor(&self) -> u64 {
        self.factors.iter().sum::<u64>().checked_div(self.factors.len() as u64).unwrap_or(1_000)
    }

    /// Learns from one request that a provider counted. The same request is learned from once; a request
    /// without counts, or of a longer transcript than `log`, teaches nothing.
    pub(crate) fn learn(&mut self, measured: &Measured, log: &Prefix, prepared: Option<&Arc<PreparedAgent>>) {
        let Some(tokens) = input_tokens(&measured.usage).filter(|tokens| *tokens > 0) else { return };
        let then = usize::try_from(measured.messages).unwrap_or(usize::MAX);
        if then > log.len() || self.learned.as_ref() == Some(measured) {
            return;
        }
        let counted = self.counted_then(then, measured.plan.as_ref(), log, prepared);
        self.note(tokens, counted);
        self.learned = Some(measured.clone());
    }

    /// Learns that a request of `counted` tokens was too long for a window of `window`: so it has at least
    /// as many. Earlier lessons are forgotten when they say otherwise.
    pub(crate) fn learn_overflow(&mut self, counted: u64, window: u64) {
        if self.corrected(counted) <= window && counted > 0 {
            self.factors.clear();
            self.note(window.saturating_add(1), counted);
        }
    }

    fn note(&mut self, tokens: u64, counted: u64) {
        let factor = tokens.saturating_mul(1_000) / counted.max(1);
        if self.factors.len() == SMOOTHED {
            self.factors.pop_front();
        }
        self.factors.push_back(factor.clamp(CLAMP.0, CLAMP.1));
    }

    /// Counts the view of a request that was made when the transcript had `then` messages.
    fn counted_then(
        &mut self,
        then: usize,
        plan: Option<&Plan>,
        log: &Prefix,
        prepared: Option<&Arc<PreparedAgent>>,
    ) -> u64 {
        let whole = [Span::Kept(0..then)];
        let cut = |span: &Span| match span {
            Span::Kept(range) => Span::Kept(range.start..range.end.min(then)),
            Span::Made(messages) => Span::Made(Arc::clone(messages)),
        };
        let spans = plan.map_or(&whole[..], |plan| &plan.spans).iter().map(cut).collect();
        self.counted(log, Some(&Plan { spans }), prepared)
    }

    /// Tokens of one message, which is at this position of the transcript that was asked about last, or in no
    /// transcript. Not corrected.
    pub(crate) fn tokens_of(&mut self, message: &Arc<Message>, at: Option<usize>) -> u64 {
        match at {
            Some(at) => self.tally.range(at..at + 1),
            None => self.tally.made(message, &*self.counter),
        }
    }

    fn overhead(&mut self, prepared: &Arc<PreparedAgent>) -> u64 {
        let known =
            |held: &PreparedAgent| held.instructions == prepared.instructions && held.tools == prepared.tools;
        if let Some((_, tokens)) =
            self.agents.iter().find(|(held, _)| Arc::ptr_eq(held, prepared) || known(held))
        {
            return *tokens;
        }
        let tokens = prepared_tokens(&*self.counter, prepared);
        if self.agents.len() == OFFERS {
            self.agents.pop_front();
        }
        self.agents.push_back((Arc::clone(prepared), tokens));
        tokens
    }
}

/// Length of a request: its disjoint input parts, or its total without the answer.
fn input_tokens(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write];
    if parts.iter().any(Option::is_some) {
        return Some(parts.into_iter().flatten().fold(0, u64::saturating_add));
    }
    usage.total_tokens.map(|total| total.saturating_sub(usage.output.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use harness_core::tool::ToolDef;
    use harness_core::transcript::Transcript;

    use super::*;

    fn log(n: usize) -> Transcript {
        (0..n).map(|_| Arc::new(Message::user("x".repeat(384)))).collect()
    }

    /// Ten messages, 1,003 tokens; `requests` of the whole are reported with so many input tokens.
    #[track_caller]
    fn check(requests: &[u64], factor: u64) {
        let (log, mut meter) = (log(10), BudgetMeter::default());
        for (i, tokens) in requests.iter().enumerate() {
            let usage = Usage::tokens(*tokens, i as u64);
            meter.learn(&Measured { messages: 10, plan: None, usage }, &log, None);
        }
        assert_eq!(meter.factor(), factor);
    }

    #[test]
    fn the_correction_is_smoothed_and_clamped() {
        check(&[], 1_000);
        check(&[1_003], 1_000);
        check(&[2_006], 2_000);
        check(&[2_006, 1_003], 1_500);
        check(&[1], 500);
        check(&[100_000], 3_000);
        check(&[100_000, 1_003, 1_003, 1_003, 1_003, 1_003], 1_000);
        check(&[0], 1_000);
    }

    #[test]
    fn a_request_teaches_once() {
        let (log, mut meter) = (log(10), BudgetMeter::default());
        let twice = Measured { messages: 10, plan: None, usage: Usage::tokens(2_006, 1) };
        let once = Measured { messages: 10, plan: None, usage: Usage::tokens(1_003, 1) };
        for measured in [&once, &twice, &twice] {
            meter.learn(measured, &log, None);
        }
        assert_eq!(meter.factor(), 1_500);
    }

    #[test]
    fn usage_belongs_to_the_view_that_it_was_measured_on() {
        let (log, mut meter) = (log(10), BudgetMeter::default());
        let plan = Plan { spans: Arc::from([Span::Kept(8..usize::MAX)]) };
        let measured = Measured { messages: 9, plan: Some(plan), usage: Usage::tokens(103, 9) };
        meter.learn(&measured, &log, None);
        assert_eq!(meter.factor(), 1_000, "103 tokens for one message of 100, whatever the transcript has");
        assert_eq!(meter.estimate(&log, None, None), 1_003);
    }

    #[test]
    fn cached_parts_count_and_the_answer_does_not() {
        let mut usage = Usage::default();
        usage.total_tokens = Some(500);
        usage.output = Some(100);
        assert_eq!(input_tokens(&usage), Some(400));
        usage.input = Some(10);
        usage.cache_read = Some(300);
        usage.cache_write = Some(5);
        assert_eq!(input_tokens(&usage), Some(315));
        assert_eq!(input_tokens(&Usage::default()), None);
    }

    #[test]
    fn instructions_and_tools_are_part_of_a_request() {
        let (log, mut meter) = (log(1), BudgetMeter::default());
        let prepared =
            Arc::new(PreparedAgent::new("main", "x".repeat(400), vec![ToolDef::new("read", "reads it")]));
        assert_eq!(meter.estimate(&log, None, Some(&prepared)), 103 + 4 + 100 + 10 + 1 + 2);
    }

    #[test]
    fn a_refused_request_was_longer_than_the_window() {
        let (log, mut meter) = (log(10), BudgetMeter::default());
        meter.learn_overflow(1_003, 1_500);
        assert!(meter.estimate(&log, None, None) >= 1_500);
        let factor = meter.factor();
        meter.learn_overflow(1_003, 1_000);
        assert_eq!(meter.factor(), factor, "what is known to be too long teaches nothing");
    }
}
