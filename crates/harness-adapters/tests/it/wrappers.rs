//! Fallback, rate limit, circuit breaker and response cache, on tokio's paused time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use harness_adapters::{
    Breaker, BreakerPolicy, CachePolicy, DynQuotaPool, Fallback, FallbackPolicy, QuotaAsk, QuotaGrant,
    QuotaLevel, QuotaPool, RateLimit, RateQuota, ResponseCache,
};
use harness_core::limits::Payer;
use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::{Clock as _, DeltaPart, Model, ModelFault, ModelFaultCode as Code, ModelRequest};
use harness_core::{Cancel, Fault, FaultSource, Origin};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::support::{Flowing, Pieces, Scripted, Step, hello, request, step};

fn busy() -> ModelFault {
    ModelFault::new(Code::Provider, "busy").transient()
}

async fn told(model: &impl Model, request: ModelRequest) -> Result<String, String> {
    step(model, request).await.map(|answer| answer.joined_text()).map_err(|fault| fault.message)
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be a fault")]
fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

// Fallback

#[track_caller]
fn chain(first: Vec<Step>, second: Vec<Step>) -> (Fallback, Scripted, Scripted) {
    let (first, second) = (Scripted::new(first), Scripted::new(second));
    let model = Fallback::new("first", first.clone()).or("second", second.clone());
    (model, first, second)
}

#[tokio::test(start_paused = true)]
async fn the_next_model_is_asked_after_a_fault_that_it_may_not_have() {
    let (model, _, second) = chain(vec![Step::fault(busy())], vec![Step::text("hi")]);
    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!(second.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_model_could_answer_is_not_passed_on() {
    for code in [Code::InvalidRequest, Code::ContextLengthExceeded, Code::Cancelled, Code::Recording] {
        let fault = ModelFault::new(code, "no");
        let (model, _, second) = chain(vec![Step::fault(fault)], vec![Step::text("hi")]);
        assert_eq!((told(&model, hello()).await, second.left()), (Err("no".into()), 1), "{code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_fault_tells_of_the_others() {
    let down = ModelFault::new(Code::AuthFailed, "no key");
    let (model, ..) = chain(vec![Step::fault(busy())], vec![Step::fault(down)]);
    assert_eq!(told(&model, hello()).await, Err("no key (before it: first: busy)".into()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_again_once_a_piece_was_shown() {
    let shown = Step::fault(busy()).after([DeltaPart::Text("Hal".into())]);
    let (model, _, second) = chain(vec![shown], vec![Step::text("hi")]);
    assert_eq!((told(&model, hello()).await, second.left()), (Err("busy".into()), 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_leaves_time_for_the_next_one_and_the_ceiling_ends_it() {
    let mut policy = FallbackPolicy::default();
    policy.each = Some(Duration::from_secs(20));
    let (model, ..) = chain(vec![Step::hang()], vec![Step::text("hi")]);
    let start = Instant::now();
    assert_eq!(told(&model.policy(policy), hello()).await, ok("hi"));
    assert_eq!(start.elapsed(), Duration::from_secs(20));

    policy.longest = Duration::from_secs(15);
    let (model, _, second) = chain(vec![Step::hang()], vec![Step::text("hi")]);
    let fault = told(&model.policy(policy), hello()).await;
    assert_eq!(fault, Err("the model did not answer within 15000 ms".into()));
    assert_eq!(second.left(), 1, "the time of all models is over");
}

#[tokio::test(start_paused = true)]
async fn a_link_may_ask_for_a_model_of_its_own() {
    let (first, second) = (Scripted::new([Step::fault(busy())]), Scripted::new([Step::text("hi")]));
    let model = Fallback::new("first", first.clone()).or_as("second", second.clone(), "vendor/small");
    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!((first.models(), second.models()), (vec![None], vec![Some("vendor/small".into())]));
}

// Rate limit

fn spent(tokens: u64) -> Step {
    Step::answer(AssistantMessage::text("hi").with_usage(Usage::tokens(tokens, 0)))
}

/// Asks as often as there are steps, and tells after which seconds the answers came.
async fn seconds(quota: RateQuota, steps: Vec<Step>) -> Vec<u64> {
    let times = steps.len();
    let model = RateLimit::new(Scripted::new(steps), quota);
    let start = Instant::now();
    let mut came = Vec::new();
    for _ in 0..times {
        assert_eq!(told(&model, hello()).await, ok("hi"));
        came.push(start.elapsed().saturating_add(Duration::from_millis(500)).as_secs());
    }
    came
}

#[tokio::test(start_paused = true)]
async fn a_minutes_worth_may_be_used_at_once_and_then_as_it_comes() {
    let steps = (0..5).map(|_| spent(0)).collect();
    assert_eq!(seconds(RateQuota::requests(3), steps).await, [0, 0, 0, 20, 40]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_past_the_quota_is_paid_for_by_the_next_request() {
    let steps = vec![spent(250), spent(0), spent(0)];
    let mut quota = RateQuota::requests(60);
    quota.tokens = Some(100);
    assert_eq!(seconds(quota, steps).await, [0, 90, 90]);
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_nothing_counts_as_one() {
    assert_eq!(seconds(RateQuota::requests(0), vec![spent(0), spent(0)]).await, [0, 60]);
}

#[tokio::test(start_paused = true)]
async fn requests_keep_their_order_and_only_so_many_wait() {
    let mut quota = RateQuota::requests(1);
    quota.waiting = 2;
    let model = RateLimit::new(Scripted::new((0..3).map(|_| spent(0))), quota);
    assert_eq!(told(&model, hello()).await, ok("hi"));
    let (first, second, third) =
        tokio::join!(told(&model, hello()), told(&model, hello()), told(&model, hello()));
    assert_eq!((first, second), (ok("hi"), ok("hi")));
    assert_eq!(third, Err("2 requests already wait for the quota, the most that may".into()));
}

/// The users whose requests are served, in their order, when these wait for a quota at once.
async fn served(by: Payer, users: &str) -> String {
    let model =
        RateLimit::new(Scripted::new((0..=users.len()).map(|_| spent(0))), RateQuota::requests(1)).turns(by);
    assert_eq!(told(&model, hello()).await, ok("hi"));
    let order = Mutex::new(String::new());
    let asked = users.chars().map(async |user| {
        let mut origin = Origin::default();
        origin.user = Some(user.to_string().into());
        let mut request = hello();
        request.origin = Arc::new(origin);
        assert_eq!(told(&model, request).await, ok("hi"));
        order.lock().push(user);
    });
    join_all(asked).await;
    order.into_inner()
}

#[tokio::test(start_paused = true)]
async fn users_take_turns() {
    assert_eq!(served(Payer::User, "aaaabbc").await, "abcabaa");
    assert_eq!(served(Payer::All, "aaaabbc").await, "aaaabbc");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_wait() {
    let model = RateLimit::new(Scripted::new([spent(0)]), RateQuota::requests(1));
    assert_eq!(told(&model, hello()).await, ok("hi"));
    let mut asked = hello();
    asked.cancel = Cancel::new();
    asked.cancel.cancel();
    let fault = step(&model, asked).await.unwrap_err();
    assert_eq!(fault.code, Code::Cancelled);
}

/// A quota that processes share, by the time of the test.
struct Pool {
    level: Mutex<QuotaLevel>,
    is_lost: AtomicBool,
    /// The calls that it does not answer, by their number.
    silent: Range<usize>,
    calls: AtomicUsize,
    clock: Flowing,
}

impl Pool {
    fn new() -> Arc<Self> {
        Self::silent(0..0)
    }

    fn silent(silent: Range<usize>) -> Arc<Self> {
        Arc::new(Self {
            level: Mutex::default(),
            is_lost: AtomicBool::new(false),
            silent,
            calls: AtomicUsize::new(0),
            clock: Flowing::start(),
        })
    }
}

impl QuotaPool for Pool {
    async fn take(&self, quota: RateQuota, ask: QuotaAsk) -> Result<QuotaGrant, Fault> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(Fault::new(FaultSource::Tool, "lost", "no engine"));
        }
        if self.silent.contains(&self.calls.fetch_add(1, Ordering::Relaxed)) {
            std::future::pending::<()>().await;
        }
        let now = self.clock.now();
        let ask = QuotaAsk { requests: ask.requests.min(quota.requests_per_second()), ..ask };
        Ok(self.level.lock().take(now, &quota, ask))
    }
}

#[tokio::test(start_paused = true)]
async fn processes_share_a_quota() {
    // 120 in a minute are there at once; 60 more take half a minute, two in each second.
    let pool = Pool::new();
    let models = [0, 1].map(|_| {
        let script = Scripted::new((0..90).map(|_| spent(0)));
        RateLimit::shared(script, RateQuota::requests(120), Arc::clone(&pool) as Arc<dyn DynQuotaPool>)
    });
    let start = Instant::now();
    let all = models.iter().flat_map(|model| (0..90).map(move |_| told(model, hello())));
    for answer in join_all(all).await {
        assert_eq!(answer, ok("hi"));
    }
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn without_its_quota_a_request_fails_and_may_be_repeated() {
    let pool = Pool::new();
    let (quota, script) = (RateQuota::requests(60), Scripted::new([spent(0)]));
    let model = RateLimit::shared(script, quota, Arc::clone(&pool) as Arc<dyn DynQuotaPool>);
    pool.is_lost.store(true, Ordering::Relaxed);
    let fault = step(&model, hello()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::RateLimited, true));
    pool.is_lost.store(false, Ordering::Relaxed);
    assert_eq!(told(&model, hello()).await, ok("hi"));
}

#[tokio::test(start_paused = true)]
async fn tokens_of_one_process_delay_the_requests_of_another() {
    let pool = Pool::new();
    let mut quota = RateQuota::requests(60);
    quota.tokens = Some(100);
    let model = |tokens| {
        let pool = Arc::clone(&pool) as Arc<dyn DynQuotaPool>;
        RateLimit::shared(Scripted::new([spent(tokens)]), quota, pool)
    };
    let start = Instant::now();
    assert_eq!(told(&model(250), hello()).await, ok("hi"));
    assert_eq!(told(&model(0), hello()).await, ok("hi"));
    assert_eq!(start.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_does_not_answer_delays_an_answer_by_a_second_and_is_paid_later() {
    // It answers the first request, but not the payment of its tokens, nor the request that is cancelled.
    let pool = Pool::silent(1..3);
    let mut quota = RateQuota::requests(60);
    quota.tokens = Some(100);
    let script = Scripted::new([spent(250), spent(0)]);
    let model = RateLimit::shared(script, quota, Arc::clone(&pool) as Arc<dyn DynQuotaPool>);
    let start = Instant::now();
    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!(start.elapsed().as_secs(), 1);

    let mut given_up = hello();
    given_up.cancel = Cancel::new();
    let cancel = given_up.cancel.clone();
    let (asked, ()) = tokio::join!(step(&model, given_up), async { cancel.cancel() });
    assert_eq!(asked.unwrap_err().code, Code::Cancelled);

    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!(start.elapsed().as_secs(), 91);
}

// Breaker

#[tokio::test(start_paused = true)]
async fn a_circuit_opens_after_faults_in_a_row_and_closes_after_an_answer() {
    let mut policy = BreakerPolicy::default();
    policy.faults = 2;
    let script = Scripted::new([
        Step::fault(busy()),
        Step::fault(busy()),
        Step::fault(busy()),
        Step::text("hi"),
        Step::fault(busy()),
        Step::text("still closed"),
    ]);
    let model = Breaker::new(script.clone(), policy);
    let open = Err("the provider failed 2 times in a row and is not asked for another 30000 ms".to_owned());
    for expected in [Err("busy".into()), Err("busy".into()), open] {
        assert_eq!(told(&model, hello()).await, expected);
    }
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(told(&model, hello()).await, Err("busy".into()), "the one that tries");
    assert!(told(&model, hello()).await.unwrap_err().contains("3 times in a row"));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!(told(&model, hello()).await, Err("busy".into()));
    assert_eq!(told(&model, hello()).await, ok("still closed"));
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_request_does_not_open_a_circuit() {
    let mut policy = BreakerPolicy::default();
    policy.faults = 1;
    let refused = || Step::fault(ModelFault::new(Code::InvalidRequest, "no"));
    let model = Breaker::new(Scripted::new([refused(), refused(), Step::text("hi")]), policy);
    assert_eq!(told(&model, hello()).await, Err("no".into()));
    assert_eq!(told(&model, hello()).await, Err("no".into()));
    assert_eq!(told(&model, hello()).await, ok("hi"));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_dropped_makes_room_for_the_next_one() {
    let mut policy = BreakerPolicy::default();
    policy.faults = 1;
    let model = Breaker::new(Scripted::new([Step::fault(busy()), Step::hang(), Step::text("hi")]), policy);
    assert_eq!(told(&model, hello()).await, Err("busy".into()));
    tokio::time::advance(Duration::from_secs(30)).await;
    let hung = tokio::time::timeout(Duration::from_secs(1), told(&model, hello())).await;
    assert!(hung.is_err());
    assert_eq!(told(&model, hello()).await, ok("hi"));
}

// Response cache

#[tokio::test]
async fn the_same_request_is_answered_from_the_cache_and_used_nothing() {
    let script = Scripted::new([spent(40), Step::text("other")]);
    let model = ResponseCache::new(script.clone(), CachePolicy::default());
    assert_eq!(told(&model, hello()).await, ok("hi"));
    let pieces = Pieces::default();
    let again = model.step(hello(), &pieces).await.unwrap();
    let usage = again.usage.clone().unwrap();
    assert_eq!((again.joined_text(), usage.requests, usage.all_tokens()), ("hi".into(), Some(0), 0));
    assert_eq!((pieces.text(), script.left()), ("hi".into(), 1));
    assert_eq!(told(&model, request([Message::user("another question")])).await, ok("other"));
}

#[tokio::test]
async fn faults_and_useless_answers_are_not_kept() {
    let useless = AssistantMessage::invalid(&harness_core::message::Invalid::new("garbled"));
    let script = Scripted::new([Step::fault(busy()), Step::answer(useless), Step::text("hi")]);
    let model = ResponseCache::new(script, CachePolicy::default());
    assert_eq!(told(&model, hello()).await, Err("busy".into()));
    assert_eq!(told(&model, hello()).await, ok(""));
    assert_eq!(told(&model, hello()).await, ok("hi"));
    assert_eq!(told(&model, hello()).await, ok("hi"));
}

#[tokio::test]
async fn the_answer_used_longest_ago_makes_room() {
    let mut policy = CachePolicy::default();
    policy.answers = 2;
    let script = Scripted::new(["a", "b", "c", "b again"].map(Step::text));
    let model = ResponseCache::new(script.clone(), policy);
    let asked = [("1", "a"), ("2", "b"), ("1", "a"), ("3", "c"), ("1", "a"), ("2", "b again")];
    for (question, answer) in asked {
        assert_eq!(told(&model, request([Message::user(question)])).await, ok(answer), "{question}");
    }
    assert_eq!(script.left(), 0);
}
