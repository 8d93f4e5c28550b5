//! The ledger of a run: every model call that a part makes on its behalf is reserved and settled here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Purpose, PurposeUsage, TotalUsage};
use crate::limits::{Amount, Limit};
use crate::message::Usage;

/// Access to the budget of a run for model calls of its parts: layers, guardrails, gates, hooks, compactors.
///
/// A context hands it out with the purpose of the part. A call through it is refused (`budget_reached`) when
/// the budget has no room for its request; otherwise its usage is charged when it ends, even when it fails or
/// is dropped. The turn ends `budget_reached` before its next step when a ceiling was reached.
///
/// Clones share one budget.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Subject};
/// use harness_core::port::{DynModel, Ledger, ModelRequest, PreparedAgent};
/// use harness_core::transcript::{Transcript, View};
/// use harness_core::{Fault, FaultSource};
///
/// struct Polite(Arc<dyn DynModel>);
///
/// impl Check for Polite {
///     async fn judge(&self, subject: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
///         let log: Transcript = [Arc::new(Message::user(subject.text()))].into_iter().collect();
///         let prepared = PreparedAgent::new("judge", "Is this polite? Answer yes or no.", []);
///         let request = ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared));
///         let ledger: &Ledger = &cx.ledger;
///         let said = ledger.call(&*self.0, request).await;
///         let said = said.map_err(|fault| Fault::new(FaultSource::Guardrail, fault.code.as_str(), fault.message))?;
///         let polite = said.joined_text().starts_with("yes");
///         Ok(if polite { CheckVerdict::Accept } else { CheckVerdict::refuse("impolite") }.into())
///     }
/// }
/// # let _ = |model| Polite(model);
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    purpose: Purpose,
    book: Arc<Book>,
}

#[derive(Debug)]
struct Book {
    /// Whether usage waits to be taken.
    settled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the run has left, without what follows.
    left: Amount,
    /// Reserved for calls in flight.
    reserved: Amount,
    /// Settled, and not taken yet.
    spent: TotalUsage,
    spent_amount: Amount,
    /// The run is over.
    closed: bool,
}

impl Ledger {
    /// A ledger without limits, for tests and for work outside of runs.
    pub fn unlimited(purpose: Purpose) -> Self {
        let state = State {
            left: Amount::UNLIMITED,
            reserved: Amount::NONE,
            spent: TotalUsage::default(),
            spent_amount: Amount::NONE,
            closed: false,
        };
        Self { purpose, book: Arc::new(Book { settled: AtomicBool::new(false), state: Mutex::new(state) }) }
    }

    /// The same ledger for calls of another purpose.
    #[must_use]
    pub fn for_purpose(&self, purpose: Purpose) -> Self {
        Self { purpose, book: Arc::clone(&self.book) }
    }

    /// The purpose of calls through this handle.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Tokens and money that are left for calls: not used, and not reserved by another call.
    pub fn left(&self) -> Amount {
        let state = self.state();
        state.left.minus(state.reserved).minus(state.spent_amount)
    }

    /// Charges usage of a call that was made without a model port, for example to an embedding endpoint.
    pub fn charge(&self, usage: &Usage) {
        self.settle(Amount::NONE, &PurposeUsage::of_call(Some(usage), true));
    }

    /// Reserves the tokens of a request; says why there is no room for it.
    pub(crate) fn reserve(&self, input: u64) -> Result<Reservation<'_>, String> {
        let mut state = self.state();
        if state.closed {
            return Err("the run is over; the model was not called".to_owned());
        }
        let mut want = Amount::NONE;
        want.tokens = input.max(1);
        let left = state.left.minus(state.reserved).minus(state.spent_amount);
        let reached = if left.cost.0 == 0 {
            Some((Limit::Cost, format!("no budget is left for a call ({})", self.purpose.as_str())))
        } else if want.tokens > left.tokens {
            let (left, needed, purpose) = (left.tokens, want.tokens, self.purpose.as_str());
            Some((Limit::Tokens, format!("{left} tokens are left, a call ({purpose}) needs about {needed}")))
        } else {
            None
        };
        if let Some((limit, text)) = reached {
            return Err(format!("limit of {limit}: {text}; the model was not called"));
        }
        state.reserved = state.reserved.plus(want);
        Ok(Reservation { ledger: self, input, reserved: Some(want) })
    }

    fn settle(&self, reserved: Amount, used: &PurposeUsage) {
        let mut state = self.state();
        state.reserved = state.reserved.minus(reserved);
        state.spent.add(self.purpose, used);
        state.spent_amount = state.spent_amount.plus(used.amount());
        self.book.settled.store(true, Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.book.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Usage settled through any handle of this ledger and not taken before.
    pub fn take(&self) -> Option<TotalUsage> {
        if !self.book.settled.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut state = self.state();
        state.left = state.left.minus(state.spent_amount);
        state.spent_amount = Amount::NONE;
        Some(std::mem::take(&mut state.spent))
    }

    /// Tells what the run has left, once all that was taken is charged there.
    pub(crate) fn sync(&self, left: Amount) {
        self.state().left = left;
    }

    /// The run is over: further calls are refused.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }
}

/// A call in flight; one that is dropped counts.
pub(crate) struct Reservation<'l> {
    ledger: &'l Ledger,
    input: u64,
    reserved: Option<Amount>,
}

impl Reservation<'_> {
    pub(crate) fn close(&mut self, usage: Option<&Usage>, answered: bool) {
        if let Some(reserved) = self.reserved.take() {
            self.ledger.settle(reserved, &PurposeUsage::of_call(usage, answered));
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let sent = Usage::default().or_estimated(self.input, 0);
        self.close(Some(&sent), false);
    }
}
