//! Wrappers around one another in every order, over a server that fails: what holds for each of them alone
//! holds for all of them together.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::{
    Breaker, BreakerPolicy, CachePolicy, Fallback, FallbackPolicy, RateLimit, RateQuota, ResponseCache,
    Retry, RetryPolicy,
};
use harness_core::Cancel;
use harness_core::Millis;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{Clock, DynModel, Model as _, ModelFault, ModelFaultCode as Code, ModelRequest};
use harness_record::traffic::{Recorder, Replay};
use tokio::time::Instant;

use crate::support::{Flowing, Pieces, Reply, Scripted, Server, Step, bounded, hello, model, request, step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Retry,
    Limit,
    Breaker,
    Cache,
    Fallback,
}

const LAYERS: [Layer; 5] = [Layer::Retry, Layer::Limit, Layer::Breaker, Layer::Cache, Layer::Fallback];

/// Every order of these layers, the innermost first.
fn orders(layers: &[Layer]) -> Vec<Vec<Layer>> {
    if layers.is_empty() {
        return vec![Vec::new()];
    }
    let starting_with = |first: &Layer| {
        let rest: Vec<Layer> = layers.iter().copied().filter(|layer| layer != first).collect();
        let first = *first;
        orders(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    layers.iter().flat_map(starting_with).collect()
}

fn is_inside(order: &[Layer], inner: Layer, outer: Layer) -> bool {
    let at = |layer| order.iter().position(|known| *known == layer);
    at(inner) < at(outer)
}

/// What the layers are set up with.
struct Setup {
    attempts: u32,
    first_wait: Duration,
    quota: RateQuota,
    ceiling: Duration,
    clock: Arc<dyn Clock>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_wait: Duration::from_millis(1),
            quota: RateQuota::requests(1_000),
            ceiling: Duration::from_mins(5),
            clock: Arc::new(Flowing::start()),
        }
    }
}

impl Setup {
    /// `first` inside all layers of the order; `spare` is what the fallback goes to.
    fn stack(
        &self,
        order: &[Layer],
        first: Arc<dyn DynModel>,
        spare: &Arc<dyn DynModel>,
    ) -> Arc<dyn DynModel> {
        order.iter().fold(first, |inner, layer| match layer {
            Layer::Retry => {
                let mut policy = RetryPolicy::default();
                (policy.attempts, policy.first_wait) = (self.attempts, self.first_wait);
                Arc::new(Retry::new(inner, policy).clock(Arc::clone(&self.clock)))
            }
            Layer::Limit => Arc::new(RateLimit::new(inner, self.quota).clock(Arc::clone(&self.clock))),
            Layer::Breaker => Arc::new(Breaker::new(inner, BreakerPolicy::default())),
            Layer::Cache => Arc::new(ResponseCache::new(inner, CachePolicy::default())),
            Layer::Fallback => {
                let mut policy = FallbackPolicy::default();
                policy.longest = self.ceiling;
                Arc::new(Fallback::new("first", inner).or("spare", Arc::clone(spare)).policy(policy))
            }
        })
    }
}

/// Two servers: the first with a script of its own, the spare one always well.
struct Servers {
    first: Server,
    spare: Server,
}

impl Servers {
    async fn start(replies: Vec<Reply>) -> Self {
        Self { first: Server::start(replies).await, spare: Server::start([says("spare")]).await }
    }

    fn stack(&self, order: &[Layer]) -> Arc<dyn DynModel> {
        let spare: Arc<dyn DynModel> = Arc::new(model(&self.spare));
        Setup::default().stack(order, Arc::new(model(&self.first)), &spare)
    }

    /// How often each was asked.
    fn asked(&self) -> (usize, usize) {
        (self.first.seen().len(), self.spare.seen().len())
    }
}

fn says(text: &str) -> Reply {
    Reply::events().delta(&format!(r#"{{"content":"{text}"}}"#)).finish("stop")
}

fn fails(status: u16) -> Reply {
    Reply::full(status, "retry-after-ms: 1\r\n", r#"{"error":{"message":"no"}}"#)
}

/// Asks and returns the text or the fault, and the text that was streamed.
async fn told(model: &dyn DynModel, order: &[Layer]) -> (Result<String, ModelFault>, String) {
    let pieces = Pieces::default();
    let answer = bounded(&format!("{order:?}"), model.step_boxed(hello(), &pieces)).await;
    (answer.map(|answer| answer.joined_text()), pieces.text())
}

#[tokio::test]
async fn a_passing_fault_costs_one_more_request_whoever_makes_it() {
    for order in orders(&LAYERS) {
        let servers = Servers::start(vec![fails(503), says("first")]).await;
        let (answer, shown) = told(&*servers.stack(&order), &order).await;
        let repeats = is_inside(&order, Layer::Retry, Layer::Fallback);
        let (text, asked) = if repeats { ("first", (2, 0)) } else { ("spare", (1, 1)) };
        assert_eq!((answer.unwrap(), shown.as_str()), (text.to_owned(), text), "{order:?}");
        assert_eq!(servers.asked(), asked, "{order:?}");
    }
}

#[tokio::test]
async fn a_lasting_fault_is_not_repeated_and_only_another_model_is_asked() {
    for order in orders(&LAYERS) {
        let servers = Servers::start(vec![fails(401)]).await;
        let (answer, shown) = told(&*servers.stack(&order), &order).await;
        assert_eq!((answer.unwrap(), shown.as_str()), ("spare".to_owned(), "spare"), "{order:?}");
        assert_eq!(servers.asked(), (1, 1), "{order:?}");

        let servers = Servers::start(vec![fails(400)]).await;
        let fault = told(&*servers.stack(&order), &order).await.0.unwrap_err();
        assert_eq!((fault.code, servers.asked()), (Code::InvalidRequest, (1, 0)), "{order:?}");
    }
}

#[tokio::test]
async fn nothing_is_asked_again_once_a_byte_of_the_answer_was_passed_on() {
    let half = || Reply::events().delta(r#"{"content":"Half"}"#);
    let reported = half().event(r#"{"error":{"code":503,"message":"overloaded"}}"#);
    for reply in [half(), reported] {
        for order in orders(&LAYERS) {
            let servers = Servers::start(vec![reply.clone(), says("again")]).await;
            let (answer, shown) = told(&*servers.stack(&order), &order).await;
            let fault = answer.unwrap_err();
            assert_eq!(fault.partial.unwrap().joined_text(), "Half", "{order:?}");
            assert_eq!((shown.as_str(), servers.asked()), ("Half", (1, 0)), "{order:?}");
        }
    }
}

#[tokio::test]
async fn the_same_question_is_asked_once() {
    for order in orders(&LAYERS) {
        let servers = Servers::start(vec![says("first"), says("other")]).await;
        let model = servers.stack(&order);
        for _ in 0..2 {
            let (answer, shown) = told(&*model, &order).await;
            assert_eq!((answer.unwrap(), shown.as_str()), ("first".to_owned(), "first"), "{order:?}");
        }
        assert_eq!(servers.asked(), (1, 0), "{order:?}");
    }
}

#[tokio::test]
async fn what_a_run_saw_through_any_stack_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    for order in orders(&[Layer::Retry, Layer::Cache, Layer::Fallback]) {
        let servers = Servers::start(vec![fails(503), says("first")]).await;
        let live = (Pieces::default(), Pieces::default());
        let recorder = Recorder::create(servers.stack(&order), &path).unwrap();
        let answer = recorder.step(hello(), &live.0).await.unwrap();
        let replay = Replay::open(&path).unwrap();
        assert_eq!(replay.step(hello(), &live.1).await.unwrap(), answer, "{order:?}");
        assert_eq!(live.0.all(), live.1.all(), "{order:?}");
        replay.finish().unwrap();
    }
}

fn busy() -> ModelFault {
    ModelFault::new(Code::Provider, "busy").transient()
}

/// Two models that are always busy, in a stack.
fn always_busy(setup: &Setup, order: &[Layer], fault: &ModelFault) -> Arc<dyn DynModel> {
    let script =
        || -> Arc<dyn DynModel> { Arc::new(Scripted::new((0..500).map(|_| Step::fault(fault.clone())))) };
    setup.stack(order, script(), &script())
}

#[tokio::test(start_paused = true)]
async fn no_order_waits_past_the_deadline() {
    for order in orders(&LAYERS) {
        let setup = Setup { attempts: 100, first_wait: Duration::from_secs(1), ..Setup::default() };
        let model = always_busy(&setup, &order, &busy());
        let mut request = hello();
        request.deadline = Some(setup.clock.now().after(Millis(10_000)));
        let start = Instant::now();
        let fault = step(&model, request).await.unwrap_err();
        let took = start.elapsed();
        assert!(fault.transient && took < Duration::from_secs(10), "{order:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_keeps_its_ceiling_whatever_is_inside_it() {
    let ceiling = Duration::from_secs(5);
    for order in orders(&LAYERS).into_iter().filter(|order| is_inside(order, Layer::Retry, Layer::Fallback)) {
        let first_wait = Duration::from_secs(1);
        let setup = Setup { attempts: 4, first_wait, ceiling, ..Setup::default() };
        let start = Instant::now();
        step(&always_busy(&setup, &order, &busy()), hello()).await.unwrap_err();
        assert!(start.elapsed() <= ceiling, "{order:?}: {:?}", start.elapsed());
    }
}

/// A request that is cancelled after a second.
fn soon_cancelled(text: &str) -> ModelRequest {
    let mut request = request([Message::user(text)]);
    request.cancel = Cancel::new();
    let cancel = request.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    request
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_between_attempts_in_every_order() {
    for order in orders(&LAYERS) {
        let later = ModelFault { retry_after: Some(Millis(30_000)), ..busy() };
        let model = always_busy(&Setup::default(), &order, &later);
        let start = Instant::now();
        step(&model, soon_cancelled("hello")).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::from_secs(1), "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_the_quota_in_every_order() {
    for order in orders(&LAYERS) {
        let setup = Setup { quota: RateQuota::requests(1), ..Setup::default() };
        let script = || Scripted::new([Step::text("hi"), Step::text("hi")]);
        let (first, spare) = (script(), script());
        let spare_model: Arc<dyn DynModel> = Arc::new(spare.clone());
        let model = setup.stack(&order, Arc::new(first.clone()), &spare_model);
        step(&model, hello()).await.unwrap();
        let start = Instant::now();
        let fault = step(&model, soon_cancelled("again")).await.unwrap_err();
        assert_eq!((fault.code, start.elapsed()), (Code::Cancelled, Duration::from_secs(1)), "{order:?}");
        assert_eq!((first.left(), spare.left()), (1, 2), "{order:?}: nothing more was asked");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_quota_past_the_deadline_fails_at_once() {
    let setup = Setup { quota: RateQuota::requests(1), ..Setup::default() };
    let script = Scripted::new([Step::text("hi"), Step::text("hi")]);
    let spare: Arc<dyn DynModel> = Arc::new(Scripted::new([]));
    let model = setup.stack(&[Layer::Limit], Arc::new(script.clone()), &spare);
    step(&model, hello()).await.unwrap();
    let mut late = hello();
    late.deadline = Some(setup.clock.now().after(Millis(30_000)));
    let start = Instant::now();
    let fault = step(&model, late).await.unwrap_err();
    assert_eq!((fault.code, fault.transient, start.elapsed()), (Code::RateLimited, true, Duration::ZERO));
    assert_eq!(fault.retry_after, Some(Millis(60_000)));
}

#[tokio::test(start_paused = true)]
async fn retries_around_retries_count_every_request() {
    let script = Scripted::new([
        Step::fault(busy()),
        Step::fault(busy()),
        Step::fault(busy()),
        Step::answer(AssistantMessage::text("hi")),
    ]);
    let mut policy = RetryPolicy::default();
    policy.attempts = 2;
    let model = Retry::new(Retry::new(script, policy.clone()), policy);
    let answer = step(&model, hello()).await.unwrap();
    assert_eq!(answer.usage.unwrap().requests, Some(3), "those of an attempt that failed are not known");
}

/// The wait that each form of the header asks for, over HTTP and on paused time.
#[tokio::test]
async fn the_wait_that_a_reply_asks_for_is_kept_in_every_form() {
    let date = "date: Wed, 21 Oct 2026 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2026 07:28:07 GMT\r\n";
    for (headers, seconds) in [("retry-after: 7\r\n", 7), ("retry-after-ms: 7000\r\n", 7), (date, 7)] {
        let limited = Reply::full(429, headers, r#"{"error":{"message":"slow down"}}"#);
        let server = Server::start([limited]).await;
        let fault = step(&model(&server), hello()).await.unwrap_err();
        assert_eq!(fault.retry_after, Some(Millis(seconds * 1_000)), "{headers}");
        let script = Scripted::new([Step::fault(fault), Step::text("hi")]);
        tokio::time::pause();
        let start = Instant::now();
        step(&Retry::new(script, RetryPolicy::default()), hello()).await.unwrap();
        let over = start.elapsed().checked_sub(Duration::from_secs(seconds));
        assert!(over.is_some_and(|over| over <= Duration::from_millis(2)), "{headers}: {over:?} over");
        tokio::time::resume();
    }
}
