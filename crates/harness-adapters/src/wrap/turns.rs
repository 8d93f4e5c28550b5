//! Turns of those who wait: one with many requests delays the others by one request at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A lock for which payers wait in turn; the requests of one payer keep their order.
#[derive(Default)]
pub(super) struct Turns(Mutex<Line>);

#[derive(Default)]
struct Line {
    is_taken: bool,
    /// User with the turn, or with the last one.
    last: Arc<str>,
    /// Those who wait, with their requests. The first is served next.
    payers: VecDeque<(Arc<str>, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Turns {
    /// Waits for a turn, which lasts until it is dropped. A turn that is given to a dropped future goes to the next.
    pub(super) async fn take(self: &Arc<Self>, payer: Arc<str>) -> Turn {
        let given = {
            let mut line = self.0.lock();
            if !std::mem::replace(&mut line.is_taken, true) {
                line.last = payer;
                return self.turn();
            }
            let (sender, given) = oneshot::channel();
            match line.payers.iter_mut().find(|(known, _)| *known == payer) {
                Some((_, waiting)) => waiting.push_back(sender),
                None => line.payers.push_back((payer, VecDeque::from([sender]))),
            }
            given
        };
        // Senders are dropped with the turns alone.
        given.await.unwrap_or_else(|_| self.turn())
    }

    fn turn(self: &Arc<Self>) -> Turn {
        Turn { turns: Arc::clone(self), is_over: false }
    }

    /// Gives the turn to the next that still waits.
    fn pass(self: &Arc<Self>) {
        let mut line = self.0.lock();
        if line.payers.front().is_some_and(|(payer, _)| *payer == line.last) {
            line.payers.rotate_left(1);
        }
        while let Some((payer, mut waiting)) = line.payers.pop_front() {
            let next = waiting.pop_front();
            line.last = Arc::clone(&payer);
            if !waiting.is_empty() {
                line.payers.push_back((payer, waiting));
            }
            match next.map(|next| next.send(self.turn())) {
                Some(Ok(())) => return,
                Some(Err(mut unwanted)) => unwanted.is_over = true,
                None => {}
            }
        }
        line.is_taken = false;
    }
}

/// The lock, until it is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    is_over: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.turns.pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Those who wait are served in this order, while those in parentheses gave up.
    fn check(waiting: &str, expected: &str) {
        let turns = Arc::new(Turns::default());
        let first = turns.take("first".into()).now_or_never().unwrap();
        let mut all: Vec<_> = waiting
            .split(' ')
            .map(|name| {
                let payer = name.trim_matches(['(', ')', '1', '2', '3']);
                let mut turn = Box::pin(turns.take(payer.into()));
                assert!(turn.as_mut().now_or_never().is_none());
                (name, Some(turn))
            })
            .collect();
        for (name, turn) in &mut all {
            if name.starts_with('(') {
                *turn = None;
            }
        }
        drop(first);
        let mut served = Vec::new();
        loop {
            let next = all.iter_mut().find_map(|(name, waits)| {
                let turn = waits.as_mut()?.now_or_never()?;
                *waits = None;
                Some((*name, turn))
            });
            let Some((name, turn)) = next else { break };
            served.push(name);
            drop(turn);
        }
        assert_eq!(served.join(" "), expected);
        assert!(turns.take("last".into()).now_or_never().is_some(), "nobody has the turn");
    }

    #[test]
    fn payers_are_served_in_turn_and_each_in_its_order() {
        check("a1 a2 a3 b1 c1 b2", "a1 b1 c1 a2 b2 a3");
        check("a1 a2", "a1 a2");
    }

    #[test]
    fn those_who_gave_up_are_left_out() {
        check("a1 (a2) a3 (b1) c1", "a1 c1 a3");
        check("(a1) (b1)", "");
    }

    #[test]
    fn a_turn_that_nobody_takes_goes_to_the_next() {
        let turns = Arc::new(Turns::default());
        let first = turns.take("a".into()).now_or_never().unwrap();
        let mut given = Box::pin(turns.take("b".into()));
        let mut next = Box::pin(turns.take("c".into()));
        assert!(given.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
        drop(first);
        drop(given);
        assert!(next.now_or_never().is_some());
    }
}
