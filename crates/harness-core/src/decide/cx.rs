//! What a gate or a check may look at.

use std::sync::Arc;

use crate::cancel::Cancel;
use crate::origin::Origin;
use crate::outcome::Purpose;
use crate::port::Ledger;
use crate::time::Time;
use crate::transcript::Prefix;

/// What a gate or a check may look at beside its subject.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::decide::DecideCx;
/// use harness_core::transcript::Transcript;
/// use harness_core::{Cancel, Origin, Time};
///
/// let cx = DecideCx::new(Transcript::default().prefix(), Arc::new(Origin::default()), Cancel::never(), Time(0));
/// assert!(cx.log.is_empty());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecideCx {
    /// The transcript so far: the evidence.
    pub log: Prefix,
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// Fires when the answer is not wanted any more.
    pub cancel: Cancel,
    /// When it is asked.
    pub now: Time,
    /// Where its model calls are reserved and settled.
    pub ledger: Ledger,
}

impl DecideCx {
    /// For tests of gates and checks, and for drivers of your own. Model calls are not limited.
    pub fn new(log: Prefix, origin: Arc<Origin>, cancel: Cancel, now: Time) -> Self {
        let ledger = Ledger::unlimited(Purpose::Judge);
        Self { log, origin, cancel, now, ledger }
    }

    /// The same with a ledger for its model calls.
    #[must_use]
    pub(crate) fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger, ..self }
    }
}
