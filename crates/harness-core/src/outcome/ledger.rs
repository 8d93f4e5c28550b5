//! Ledger of a run: reserves and charges the model calls of its parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Purpose, PurposeUsage, TotalUsage};
use crate::limits::{Amount, Limit};
use crate::message::Usage;

/// Budget of a run for model calls of its parts: layers, gates, checks, compactors. Clones share one budget.
///
/// A call is rejected with `budget_reached` if its request does not fit. Otherwise its usage is charged when it ends, even
/// if it fails or is dropped. If a ceiling is reached, the turn ends `budget_reached` before its next step.
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
///         let response = ledger.call(&*self.0, request).await;
///         let response =
///             response.map_err(|e| Fault::new(FaultSource::Guardrail, e.code.as_str(), e.message))?;
///         let polite = response.joined_text().starts_with("yes");
///         Ok(if polite { CheckVerdict::Accept } else { CheckVerdict::refuse("impolite") }.into())
///     }
/// }
/// # let _ = |model| Polite(model);
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    purpose: Purpose,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether settled usage was not taken yet. Reading it takes no lock.
    has_spent: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Rest of the run's budget, before reservations and settled usage.
    left: Amount,
    /// Reserved for calls in flight.
    reserved: Amount,
    /// Settled usage that was not taken yet, if any.
    spent: Option<TotalUsage>,
    spent_amount: Amount,
    /// Whether the run has ended.
    closed: bool,
}

impl Ledger {
    /// Creates a ledger without limits, for tests and for work outside of runs.
    pub fn unlimited(purpose: Purpose) -> Self {
        let state = Mutex::new(State { left: Amount::UNLIMITED, ..State::default() });
        Self { purpose, shared: Arc::new(Shared { state, ..Shared::default() }) }
    }

    /// Returns a handle for calls with another purpose.
    #[must_use]
    pub fn for_purpose(&self, purpose: Purpose) -> Self {
        Self { purpose, ..self.clone() }
    }

    /// Returns the purpose of calls through this handle.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns the tokens and cost that are neither used nor reserved.
    pub fn left(&self) -> Amount {
        let state = self.shared.state.lock();
        state.left.minus(state.reserved).minus(state.spent_amount)
    }

    /// Charges a call that was made without a model port, for example to an embedding endpoint.
    pub fn charge(&self, usage: &Usage) {
        self.settle(Amount::NONE, &PurposeUsage::of_call(Some(usage), true));
    }

    /// Reserves the tokens of a request.
    ///
    /// # Errors
    /// The reason why the request does not fit.
    pub(crate) fn reserve(&self, input: u64) -> Result<Reservation<'_>, String> {
        let mut state = self.shared.state.lock();
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
        let mut state = self.shared.state.lock();
        state.reserved = state.reserved.minus(reserved);
        state.spent.get_or_insert_default().add(self.purpose, used);
        state.spent_amount = state.spent_amount.plus(used.amount());
        self.shared.has_spent.store(true, Ordering::Release);
    }

    /// Takes the usage that was settled through any handle since the last call.
    pub fn take(&self) -> Option<TotalUsage> {
        if !self.shared.has_spent.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.shared.state.lock();
        self.shared.has_spent.store(false, Ordering::Release);
        let spent = state.spent.take()?;
        state.left = state.left.minus(std::mem::take(&mut state.spent_amount));
        Some(spent)
    }

    /// Sets the rest of the run's budget, after taken usage was charged there.
    pub(crate) fn sync(&self, left: Amount) {
        self.shared.state.lock().left = left;
    }

    /// Closes the ledger at the end of the run: further calls are rejected.
    pub(crate) fn close(&self) {
        self.shared.state.lock().closed = true;
    }
}

/// Reservation of a call in flight. A dropped one is charged.
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
