//! Creating, taking up and finishing.

use harness_core::continuation::{CallDecision, Continuation, ContinuationKind, Resume};
use harness_core::message::Message;
use harness_core::port::Decision;
use harness_core::{End, Millis, Outcome, Time, TurnId};

use super::record::{Bounds, ContinuationRecord, Delivery, DeliveryStatus, RECORD_VERSION, Status, WaitFor};
use super::store::{ContinuationStore, StoreError};

/// What becomes of a refused approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denial {
    /// The work is taken up, and the model is told.
    #[default]
    TellModel,
    /// The record is cancelled with `approval_denied`, and nothing is taken up.
    Cancel,
}

/// How long records wait, and how often they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// For an answer of the user. Default 1 hour.
    pub clarification: Millis,
    /// For an approval. Default 24 hours.
    pub approval: Millis,
    /// For an outside result or a wake-up. Default 1 hour.
    pub deferred: Millis,
    /// Attempts at most. Default 3.
    pub attempts: u32,
    /// How long a resumption is left alone; after that its process counts as dead, and the record may be
    /// taken up again. Default 30 minutes.
    pub lease: Millis,
    /// What becomes of a refused approval. Default the model is told.
    pub denial: Denial,
}

impl Default for Rules {
    fn default() -> Self {
        const HOUR: u64 = 3_600_000;
        Self {
            clarification: Millis(HOUR),
            approval: Millis(24 * HOUR),
            deferred: Millis(HOUR),
            attempts: 3,
            lease: Millis(HOUR / 2),
            denial: Denial::default(),
        }
    }
}

impl Rules {
    fn expiry(&self, kind: ContinuationKind, now: Time) -> Time {
        now.after(match kind {
            ContinuationKind::Clarification => self.clarification,
            ContinuationKind::Approval => self.approval,
            ContinuationKind::Deferred | _ => self.deferred,
        })
    }
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The user said something.
    UserReply {
        /// What.
        message: Box<Message>,
    },
    /// Somebody decided.
    Approval {
        /// What, about each parked call, or about the model's own request.
        decisions: Vec<CallDecision>,
    },
    /// An operation outside gave its result.
    ExternalResult {
        /// Which.
        operation_id: String,
        /// What the model is told of it.
        message: Box<Message>,
    },
    /// The time has come.
    ScheduledWake,
}

impl Trigger {
    fn fits(&self, record: &ContinuationRecord) -> bool {
        match (self, &record.wait_for) {
            (Self::UserReply { .. }, WaitFor::UserReply)
            | (Self::Approval { .. }, WaitFor::ApprovalResolution { .. })
            | (Self::ScheduledWake, WaitFor::ScheduledWake) => true,
            (
                Self::ExternalResult { operation_id, .. },
                WaitFor::ExternalResult { operation_id: expected },
            ) => operation_id == expected,
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::UserReply { .. } => "user_reply".to_owned(),
            Self::Approval { .. } => "approval_resolution".to_owned(),
            Self::ExternalResult { operation_id, .. } => format!("external_result `{operation_id}`"),
            Self::ScheduledWake => "scheduled_wake".to_owned(),
        }
    }

    fn is_denial(&self) -> bool {
        let Self::Approval { decisions } = self else { return false };
        decisions.iter().all(|decided| matches!(decided.decision, Decision::Denied { .. }))
    }

    fn into_resume(self) -> Resume {
        match self {
            Self::UserReply { message } => Resume::Clarification { answer: message },
            Self::Approval { decisions } => Resume::Approval { decisions },
            Self::ExternalResult { message, .. } => Resume::Deferred { guidance: Some(message) },
            Self::ScheduledWake => Resume::Deferred { guidance: None },
        }
    }
}

/// A record that was taken up: nobody else gets hold of it until it is finished or its lease is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The record.
    pub id: String,
    /// The name of the turn that resumes: `RECORD:resume:N`.
    pub turn_id: TurnId,
    /// What to resume.
    pub continuation: Continuation,
    /// With what.
    pub resume: Resume,
}

/// The continuations of a store.
#[derive(Clone, Debug)]
pub struct Continuations<S> {
    store: S,
    rules: Rules,
}

impl<S: ContinuationStore> Continuations<S> {
    /// The continuations of a store, with the default rules.
    pub fn new(store: S) -> Self {
        Self { store, rules: Rules::default() }
    }

    /// The same with other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Keeps a continuation, waiting for what its kind says. Records of its session that wait already are
    /// superseded: a conversation stops at one place.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn create(
        &self,
        continuation: Continuation,
        now: Time,
    ) -> Result<ContinuationRecord, StoreError> {
        let wait_for = WaitFor::of(&continuation);
        self.create_waiting(continuation, wait_for, None, now).await
    }

    /// Keeps a continuation, waiting for something else than its kind says (the result of an operation), or
    /// with a place where its outcome is to be told.
    ///
    /// # Errors
    /// [`StoreError::WrongWait`] when its kind cannot wait for that, or when the store fails.
    pub async fn create_waiting(
        &self,
        continuation: Continuation,
        wait_for: WaitFor,
        delivery: Option<Delivery>,
        now: Time,
    ) -> Result<ContinuationRecord, StoreError> {
        let kind = continuation.kind;
        let fits = match wait_for {
            WaitFor::UserReply => kind == ContinuationKind::Clarification,
            WaitFor::ApprovalResolution { .. } => kind == ContinuationKind::Approval,
            WaitFor::ExternalResult { .. } | WaitFor::ScheduledWake => kind == ContinuationKind::Deferred,
        };
        if !fits {
            return Err(StoreError::WrongWait { kind, wait_for: wait_for.as_str() });
        }
        if let Some(session) = &continuation.session_id {
            for earlier in self.store.of_session(session.as_str()).await? {
                if earlier.status == Status::Pending {
                    self.end(earlier, Status::Superseded, "superseded", now).await?;
                }
            }
        }
        let record = ContinuationRecord {
            version: RECORD_VERSION,
            id: format!("cont_{}_{}", continuation.turn_id, now.0),
            revision: 1,
            status: Status::Pending,
            wait_for,
            delivery,
            bounds: Bounds::new(self.rules.expiry(kind, now), self.rules.attempts),
            continuation,
            created_at: now,
            updated_at: now,
            terminal_reason: None,
        };
        self.store.put(record.clone()).await?;
        Ok(record)
    }

    /// The record, expired when its time is over.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, id: &str, now: Time) -> Result<Option<ContinuationRecord>, StoreError> {
        let Some(record) = self.store.get(id).await? else { return Ok(None) };
        if record.status == Status::Pending && now >= record.bounds.expires_at {
            return self.end(record, Status::Expired, "expired", now).await.map(Some);
        }
        Ok(Some(record))
    }

    /// Gives a record up.
    ///
    /// # Errors
    /// When there is none, when it is over already, or when the store fails.
    pub async fn stop(&self, id: &str, reason: &str, now: Time) -> Result<ContinuationRecord, StoreError> {
        let record = self.known(id).await?;
        if record.status.is_terminal() {
            return Err(StoreError::AlreadyTerminal { id: id.to_owned(), status: record.status });
        }
        self.end(record, Status::Cancelled, reason, now).await
    }

    /// Takes a record up with what came. Then resume the work with what the claim holds, and tell how that
    /// ended with [`finish`](Self::finish).
    ///
    /// # Errors
    /// When it is unknown, over, being resumed, expired, was tried too often, or waits for something else;
    /// [`StoreError::AlreadyTerminal`] with [`Status::Cancelled`] for a refused approval under
    /// [`Denial::Cancel`]; [`StoreError::Conflict`] when somebody else was quicker.
    pub async fn claim(&self, id: &str, trigger: Trigger, now: Time) -> Result<Claim, StoreError> {
        let mut record = self.known(id).await?;
        let over = |status| Err(StoreError::AlreadyTerminal { id: id.to_owned(), status });
        let abandoned = record.status == Status::Resuming && now.since(record.updated_at) >= self.rules.lease;
        if record.status != Status::Pending && !abandoned {
            return over(record.status);
        }
        if now >= record.bounds.expires_at && !abandoned {
            self.end(record, Status::Expired, "expired", now).await?;
            return Err(StoreError::Expired { id: id.to_owned() });
        }
        if record.bounds.resume_attempts >= record.bounds.max_resume_attempts {
            let attempts = record.bounds.resume_attempts;
            return Err(StoreError::AttemptsUsed { id: id.to_owned(), attempts });
        }
        if !trigger.fits(&record) {
            let operation = match &record.wait_for {
                WaitFor::ExternalResult { operation_id } => format!(" `{operation_id}`"),
                WaitFor::UserReply | WaitFor::ApprovalResolution { .. } | WaitFor::ScheduledWake => {
                    String::new()
                }
            };
            let expected = format!("{}{operation}", record.wait_for.as_str());
            let given = trigger.describe();
            return Err(StoreError::TriggerMismatch { id: id.to_owned(), expected, given });
        }
        if self.rules.denial == Denial::Cancel && trigger.is_denial() {
            let record = self.end(record, Status::Cancelled, "approval_denied", now).await?;
            return over(record.status);
        }
        record.status = Status::Resuming;
        record.bounds.resume_attempts += 1;
        let record = self.write(record, now).await?;
        Ok(Claim {
            turn_id: TurnId::from(format!("{id}:resume:{}", record.bounds.resume_attempts)),
            id: record.id,
            continuation: record.continuation,
            resume: trigger.into_resume(),
        })
    }

    /// Tells how a resumption ended: with its end, or with what kept it from running. A work that stopped
    /// again before its end waits again, for as long as its kind says; attempts stay counted.
    ///
    /// # Errors
    /// When the record is not being resumed, or when the store fails.
    pub async fn finish(
        &self,
        id: &str,
        ended: Result<&End, String>,
        now: Time,
    ) -> Result<ContinuationRecord, StoreError> {
        let mut record = self.known(id).await?;
        if record.status != Status::Resuming {
            return Err(StoreError::NotResuming { id: id.to_owned(), status: record.status });
        }
        let end = match ended {
            Ok(end) => end,
            Err(why) => {
                let reason = format!("resume_runtime_error: {why}");
                return self.end(record, Status::Failed, &reason, now).await;
            }
        };
        match (end.outcome(), &end.continuation) {
            (Outcome::Completed, _) => self.end(record, Status::Completed, end.reason().as_str(), now).await,
            (
                Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred,
                Some(continuation),
            ) => {
                record.wait_for = WaitFor::of(continuation);
                record.bounds.expires_at = self.rules.expiry(continuation.kind, now);
                record.continuation = Continuation::clone(continuation);
                record.status = Status::Pending;
                self.write(record, now).await
            }
            (
                Outcome::Failed | Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred,
                _,
            ) => self.end(record, Status::Failed, end.reason().as_str(), now).await,
        }
    }

    /// Notes that an outcome was told, or could not be. It is tried once.
    ///
    /// # Errors
    /// When there is no record, when it is not over yet, or when the store fails.
    pub async fn delivered(&self, id: &str, told: bool, now: Time) -> Result<ContinuationRecord, StoreError> {
        let mut record = self.known(id).await?;
        if !record.status.is_terminal() {
            return Err(StoreError::NotResuming { id: id.to_owned(), status: record.status });
        }
        if let Some(delivery) = &mut record.delivery {
            delivery.status = if told { DeliveryStatus::Delivered } else { DeliveryStatus::Failed };
        }
        self.write(record, now).await
    }

    async fn known(&self, id: &str) -> Result<ContinuationRecord, StoreError> {
        self.store.get(id).await?.ok_or_else(|| StoreError::NotFound { id: id.to_owned() })
    }

    async fn end(
        &self,
        mut record: ContinuationRecord,
        status: Status,
        reason: &str,
        now: Time,
    ) -> Result<ContinuationRecord, StoreError> {
        record.status = status;
        record.terminal_reason = Some(reason.to_owned());
        self.write(record, now).await
    }

    async fn write(
        &self,
        mut record: ContinuationRecord,
        now: Time,
    ) -> Result<ContinuationRecord, StoreError> {
        record.revision += 1;
        record.updated_at = now;
        self.store.put(record.clone()).await?;
        Ok(record)
    }
}
