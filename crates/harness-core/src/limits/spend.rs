//! Budgets of more than a run: what a user, a tenant or everyone may spend in a period.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::message::Cost;
use crate::object::JsonObject;
use crate::origin::Origin;
use crate::time::Time;

crate::wire_enum! {
    /// Period of a budget, by the calendar of UTC.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum BudgetPeriod {
        /// An hour.
        Hour = "hour",
        /// A day, from midnight.
        #[default]
        Day = "day",
        /// A month, from its first day.
        Month = "month",
    }
}

impl BudgetPeriod {
    /// The end of the period that a time is in: the first moment of the next.
    pub fn end(self, now: Time) -> Time {
        let of = |length: i64| Time(now.0.div_euclid(length).saturating_add(1).saturating_mul(length));
        match self {
            Self::Hour => of(3_600_000),
            Self::Day => of(24 * 3_600_000),
            Self::Month => next_month(now).unwrap_or(Time(i64::MAX)),
        }
    }
}

/// The first moment of the next month; `None` behind the calendar's end.
fn next_month(now: Time) -> Option<Time> {
    let date = Timestamp::from_millisecond(now.0).ok()?.to_zoned(TimeZone::UTC).date();
    let first = date.first_of_month().checked_add(1.month()).ok()?;
    Some(Time(first.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()))
}

/// Payer of work: whose spending a budget counts together, and who takes turns at a rate limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payer {
    /// Everyone together.
    #[default]
    All,
    /// Each user. Work without a user counts as that of one.
    User,
    /// Each value of a key in the caller's data, for example `tenant`. Work without it counts as that of one.
    Metadata(Arc<str>),
}

impl Payer {
    /// The payer of work; `None` for everyone together.
    pub fn of(&self, origin: &Origin) -> Option<Arc<str>> {
        match self {
            Self::All => None,
            Self::User => Some(origin.user.clone().unwrap_or_default()),
            Self::Metadata(key) => {
                let data = origin.metadata.as_ref().and_then(|data| data.to::<JsonObject>().ok());
                let value = data.as_ref().and_then(|data| data.get(key));
                let text =
                    value.map(|value| value.to::<String>().unwrap_or_else(|_| value.text().to_owned()));
                Some(text.unwrap_or_default().into())
            }
        }
    }
}

/// Tokens and cost that may be spent in a period.
///
/// ```
/// use harness_core::limits::{Payer, BudgetPeriod, SpendBudget};
/// use harness_core::{Origin, Time};
///
/// let mut budget = SpendBudget::new("users", Payer::User);
/// budget.cost = "2.50".parse().ok();
/// let mut origin = Origin::default();
/// origin.user = Some("ada".into());
/// assert_eq!(budget.account(&origin), "users/ada");
/// let end = budget.period.end(Time::parse_iso("2026-02-28T12:30:00Z").unwrap());
/// assert_eq!(end.iso(), "2026-03-01T00:00:00.000Z");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpendBudget {
    /// Name. Processes that count together do so by it.
    pub name: Arc<str>,
    /// Payer whose spending counts together.
    pub per: Payer,
    /// Tokens of input and output; `None` is unlimited. Default none.
    pub tokens: Option<u64>,
    /// Cost; `None` is unlimited. Default none. Calls whose price is unknown cost nothing.
    pub cost: Option<Cost>,
    /// The period. Default a day.
    pub period: BudgetPeriod,
}

impl SpendBudget {
    /// A budget of a day that is not limited yet.
    pub fn new(name: impl Into<Arc<str>>, per: Payer) -> Self {
        Self { name: name.into(), per, tokens: None, cost: None, period: BudgetPeriod::Day }
    }

    /// The account that is charged for work.
    pub fn account(&self, origin: &Origin) -> String {
        match self.per.of(origin) {
            Some(payer) => format!("{}/{payer}", self.name),
            None => (*self.name).to_owned(),
        }
    }
}
