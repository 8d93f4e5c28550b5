//! Budgets of users, tenants and everyone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness_adapters::{DynSpendPool, SpendAccount, SpendCharge, SpendLimit, SpendPool, Spent};
use harness_core::limits::{BudgetPeriod, Payer, SpendBudget};
use harness_core::message::{AssistantMessage, Usage};
use harness_core::port::{Clock, Deltas, Model, ModelFault, ModelFaultCode as Code, ModelRequest};
use harness_core::{Cancel, Fault, FaultSource, Json, Origin, Time};
use parking_lot::Mutex;

use crate::support::{Flowing, Scripted, Step, Stopped, hello, step};

/// A request of a user with metadata; `-` for none.
fn of(user: &str, metadata: &str) -> ModelRequest {
    let mut origin = Origin::default();
    origin.user = Some(user).filter(|user| *user != "-").map(Into::into);
    origin.metadata = Json::parse(metadata).ok();
    let mut request = hello();
    request.origin = Arc::new(origin);
    request
}

/// An answer that cost so many tokens, and so many US dollars.
fn spent(tokens: u64, cost: &str) -> Step {
    let usage = Usage::tokens(tokens, 0).with_cost(cost.parse().unwrap());
    Step::answer(AssistantMessage::text("hi").with_usage(usage))
}

fn budget(name: &str, per: Payer, tokens: Option<u64>, cost: Option<&str>) -> SpendBudget {
    let mut budget = SpendBudget::new(name, per);
    (budget.tokens, budget.cost) = (tokens, cost.map(|cost| cost.parse().unwrap()));
    budget
}

fn noon() -> Arc<dyn Clock> {
    Arc::new(Stopped(Time::parse_iso("2026-01-31T12:00:00Z").unwrap()))
}

/// Has calls of so many users and their data, each of which costs 10 tokens and half a dollar, and checks what came of the last.
async fn check(budgets: &[&SpendBudget], calls: &[(&str, &str)], expected: &str) {
    let script = Scripted::new(calls.iter().map(|_| spent(10, "0.5")));
    let model = SpendLimit::new(script, budgets.iter().copied().cloned(), noon());
    let mut last = String::new();
    for (user, metadata) in calls {
        last = match step(&model, of(user, metadata)).await {
            Ok(answer) => answer.joined_text(),
            Err(fault) => format!("{} {}", fault.code.as_str(), fault.message),
        };
    }
    assert_eq!(last, expected);
}

#[tokio::test]
async fn a_budget_that_is_used_up_rejects_calls_until_its_period_ends() {
    let ada = ("ada", "-");
    let tokens = budget("users", Payer::User, Some(20), None);
    check(&[&tokens], &[ada, ada], "hi").await;
    let text = "budget_reached the budget `users` of user `ada` is used up: 20 of 20 tokens; it is renewed at 2026-02-01T00:00:00.000Z";
    check(&[&tokens], &[ada, ada, ada], text).await;
    let cost = budget("users", Payer::User, None, Some("0.75"));
    let text = "budget_reached the budget `users` of user `ada` is used up: 1 of 0.75 US dollars; it is renewed at 2026-02-01T00:00:00.000Z";
    check(&[&cost], &[ada, ada, ada], text).await;
}

#[tokio::test]
async fn users_and_tenants_have_a_budget_each_and_nobody_is_without_one() {
    let users = budget("users", Payer::User, Some(10), None);
    check(&[&users], &[("ada", "-"), ("bob", "-")], "hi").await;
    let text = "budget_reached the budget `users` of work without a user is used up: 10 of 10 tokens; it is renewed at 2026-02-01T00:00:00.000Z";
    check(&[&users], &[("-", "-"), ("-", "-")], text).await;
    let tenants = budget("tenants", Payer::Metadata("tenant".into()), Some(10), None);
    let (one, two) = (r#"{"tenant":"one"}"#, r#"{"tenant":2}"#);
    check(&[&tenants], &[("ada", one), ("ada", two)], "hi").await;
    let text = "budget_reached the budget `tenants` of tenant `2` is used up: 10 of 10 tokens; it is renewed at 2026-02-01T00:00:00.000Z";
    check(&[&users, &tenants], &[("ada", two), ("bob", two)], text).await;
    let text = "budget_reached the budget `house` is used up: 10 of 10 tokens; it is renewed at 2026-02-01T00:00:00.000Z";
    let house = budget("house", Payer::All, Some(10), None);
    check(&[&house], &[("ada", one), ("bob", two)], text).await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_renewed_with_its_period() {
    let mut hourly = budget("house", Payer::All, Some(10), None);
    hourly.period = BudgetPeriod::Hour;
    let model = SpendLimit::new(
        Scripted::new([spent(10, "0"), spent(10, "0")]),
        [hourly],
        Arc::new(Flowing::start()),
    );
    assert!(step(&model, of("ada", "-")).await.is_ok());
    assert_eq!(step(&model, of("ada", "-")).await.unwrap_err().code, Code::BudgetReached);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(step(&model, of("ada", "-")).await.is_ok());
}

#[test]
fn months_end_with_the_calendar() {
    let end = |at: &str| BudgetPeriod::Month.end(Time::parse_iso(at).unwrap()).iso();
    assert_eq!(end("2024-02-29T23:59:59Z"), "2024-03-01T00:00:00.000Z");
    assert_eq!(end("2026-12-01"), "2027-01-01T00:00:00.000Z");
    for period in BudgetPeriod::ALL {
        for at in [i64::MIN, -1, 0, i64::MAX] {
            assert!(period.end(Time(at)) > Time(at) || at == i64::MAX, "{period} {at}");
        }
    }
}

/// Accounts that may be out of reach.
#[derive(Default)]
struct Pool {
    accounts: Mutex<SpendAccount>,
    is_lost: AtomicBool,
}

impl SpendPool for Pool {
    async fn charge(&self, _: &str, charge: SpendCharge) -> Result<Spent, Fault> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(Fault::new(FaultSource::Model, "lost", "the accounts are away"));
        }
        Ok(self.accounts.lock().charge(Time(0), charge))
    }
}

impl Pool {
    fn tokens(&self) -> u64 {
        self.accounts.lock().charge(Time(0), SpendCharge::default()).amount.tokens
    }
}

fn limited<M>(model: M, pool: &Arc<Pool>) -> SpendLimit<M> {
    let pool = Arc::clone(pool) as Arc<dyn DynSpendPool>;
    SpendLimit::shared(model, [budget("house", Payer::All, Some(100), None)], pool)
}

fn shared(steps: Vec<Step>, pool: &Arc<Pool>) -> SpendLimit<Scripted> {
    limited(Scripted::new(steps), pool)
}

#[tokio::test]
async fn processes_share_a_budget() {
    let pool = Arc::new(Pool::default());
    assert!(step(&shared(vec![spent(100, "0")], &pool), of("ada", "-")).await.is_ok());
    let fault = step(&shared(vec![], &pool), of("bob", "-")).await.unwrap_err();
    assert_eq!(fault.code, Code::BudgetReached);
}

#[tokio::test]
async fn what_cannot_be_charged_is_charged_with_the_next_call() {
    let pool = Arc::new(Pool::default());
    let model = shared(vec![], &pool);
    pool.is_lost.store(true, Ordering::Relaxed);
    let fault = step(&model, of("ada", "-")).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::RateLimited, true));
    pool.is_lost.store(false, Ordering::Relaxed);
    // The accounts are away when the answer comes.
    let model = limited(Losing(Arc::clone(&pool)), &pool);
    assert!(step(&model, of("ada", "-")).await.is_ok());
    pool.is_lost.store(false, Ordering::Relaxed);
    assert_eq!(pool.tokens(), 0);
    assert!(step(&model, of("ada", "-")).await.is_ok());
    pool.is_lost.store(false, Ordering::Relaxed);
    assert_eq!(pool.tokens(), 30);
}

/// A model whose answers cost 30 tokens, behind which the accounts are away.
struct Losing(Arc<Pool>);

impl Model for Losing {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.0.is_lost.store(true, Ordering::Relaxed);
        Ok(AssistantMessage::text("hi").with_usage(Usage::tokens(30, 0)))
    }
}

#[tokio::test]
async fn a_call_whose_usage_is_unknown_is_charged_an_estimate() {
    let pool = Arc::new(Pool::default());
    let asked = of("ada", "-").estimated_tokens();
    // No usage reported.
    let text = "x".repeat(40);
    assert!(
        step(&shared(vec![Step::answer(AssistantMessage::text(&*text))], &pool), of("ada", "-"))
            .await
            .is_ok()
    );
    assert_eq!(pool.tokens(), asked + 10);
    // Dropped in the middle.
    let model = shared(vec![Step::hang(), spent(0, "0")], &pool);
    let dropped = tokio::time::timeout(Duration::ZERO, step(&model, of("ada", "-"))).await;
    assert!(dropped.is_err());
    // A fault of the provider costs nothing.
    let failing = shared(vec![Step::fault(ModelFault::new(Code::Provider, "busy"))], &pool);
    assert!(step(&failing, of("ada", "-")).await.is_err());
    assert_eq!(pool.tokens(), asked + 10);
    assert!(step(&model, of("ada", "-")).await.is_ok());
    assert_eq!(pool.tokens(), 3 * asked + 10);
    // Cancelled before it was sent.
    let mut cancelled = of("ada", "-");
    cancelled.cancel = Cancel::new();
    cancelled.cancel.cancel();
    assert_eq!(step(&model, cancelled).await.unwrap_err().code, Code::Cancelled);
}
