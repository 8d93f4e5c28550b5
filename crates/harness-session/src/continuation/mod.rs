//! Continuations that wait: for a reply, an approval, an outside result, a time.
//!
//! A turn that stops before its end leaves a [`Continuation`](harness_core::continuation::Continuation).
//! [`Continuations`] keeps it with what it waits for, for how long, and how often it may be tried: an hour for
//! a question or a deferral, a day for an approval, three attempts. Only one resumption at a time gets hold
//! of it: every change of a record is made against the revision that was read.
//!
//! ```
//! use harness_core::Time;
//! use harness_core::continuation::{CallDecision, Continuation};
//! use harness_session::continuation::{Continuations, MemoryContinuations, Trigger};
//!
//! # async fn example(continuation: Continuation) -> Result<(), harness_session::continuation::StoreError> {
//! # let now = Time(1_767_225_600_000);
//! let waiting = Continuations::new(MemoryContinuations::new());
//! let record = waiting.create(continuation, now).await?;
//!
//! // Later, when somebody has decided:
//! let decided = Trigger::Approval { decisions: vec![CallDecision::granted("c1")] };
//! let claim = waiting.claim(&record.id, decided, now).await?;
//! // … run `harness.resume_with(claim.continuation, claim.resume)`, and tell how that ended:
//! // waiting.finish(&claim.id, Ok(&report.end), now).await?;
//! # Ok(())
//! # }
//! ```

mod file;
mod memory;
mod record;
mod runtime;
mod store;

pub use file::FileContinuations;
pub use memory::MemoryContinuations;
pub use record::{Bounds, ContinuationRecord, Delivery, DeliveryStatus, Status, WaitFor};
pub use runtime::{Claim, Continuations, Denial, Rules, Trigger};
pub use store::{ContinuationStore, StoreError};
