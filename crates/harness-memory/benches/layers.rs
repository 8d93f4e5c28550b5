//! What ten layers add to a turn, at histories of 10 and 10,000 messages.
//!
//! `cargo bench -p harness-memory --bench layers`. A turn here is one iteration as the machine drives it:
//! begin, the prompt, a view, an answer that is judged and stored, and the end. Two of the layers change
//! their state with each answer, one recalls only when its state changed, one appends. Not a test: nothing
//! fails because a machine is slow.

#![expect(clippy::expect_used, reason = "a benchmark may fail loudly")]

use std::sync::Arc;

use divan::Bencher;
use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::{AppendSource, BoxFuture, Clock, ContextPipeline, PreparedAgent, ViewCx};
use harness_core::tool::ToolDef;
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Origin, Outcome, Time};
use harness_memory::layer::{
    Appended, FnLayer, LayerDef, LayerSetup, Pipeline, Placement, RecallMode, Recalled, Update,
};

fn main() {
    divan::main();
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        Time(0)
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A transcript of `count` messages of questions and answers.
fn transcript(count: usize) -> Transcript {
    let message = |at: usize| {
        let text = format!("message {at}: the tide at the pier is {} cm above the mark today", at % 97);
        Arc::new(if at.is_multiple_of(2) { Message::user(text) } else { AssistantMessage::text(text).into() })
    };
    (0..count).map(message).collect()
}

fn ten_layers() -> LayerSetup {
    let text = "What is known about the harbour: three piers, two cranes, one tide gauge. ".repeat(4);
    let mut setup = LayerSetup::new();
    for (at, slot) in (0..5).zip((100..).step_by(10)) {
        let text = text.clone();
        let def = LayerDef::new(format!("known-{at}"), slot, []).with_range(50, 800);
        setup = setup.with(FnLayer::new(def).on_recall(move |_, _| {
            let text = text.clone();
            async move { Ok(Recalled::text(text)) }
        }));
    }
    for at in 0..2 {
        let count = LayerDef::new(format!("count-{at}"), 200 + at, []);
        let count = FnLayer::new(count)
            .on_init(|_, _| async { Update::set(&0) })
            .on_recall(
                |_, cx| async move { Ok(Recalled::text(format!("{} answers", cx.state_as::<u64>()?))) },
            )
            .on_store(|_, cx| async move { Update::set(&(cx.state_as::<u64>()? + 1)) });
        setup = setup.with(count);
    }
    let mut eventual = LayerDef::new("eventual", 300, []);
    eventual.recall_mode = RecallMode::Eventual;
    let live = LayerDef::new("clock", 80, []).with_placement(Placement::Live);
    setup
        .with(FnLayer::new(eventual).on_recall(|_, _| async { Ok(Recalled::text("slow to find")) }))
        .with(FnLayer::new(live).on_recall(|_, cx| async move { Ok(Recalled::text(cx.now.iso())) }))
        .with(
            FnLayer::new(LayerDef::new("append", 90, []))
                .on_append(|ask, _| async { Ok(Appended::items(ask.items)) }),
        )
}

/// One iteration, with everything that the layers are asked in it.
async fn turn(layers: &Pipeline, cx: &ViewCx, prompt: &Arc<Message>, answer: &Arc<Message>) {
    layers.begin(cx).await.expect("layers begin");
    let prompt = vec![Arc::clone(prompt)];
    layers.append(AppendSource::Prompt, prompt, cx).await.expect("the prompt passes");
    divan::black_box(layers.recall(cx).await.expect("a view"));
    layers.after_model(answer, cx).await.expect("the answer is judged");
    layers.store(answer, cx).await.expect("the answer is stored");
    layers.complete(Outcome::Completed, cx).await.expect("the end");
}

#[divan::bench(args = [10, 10_000])]
fn ten_layers_in_a_turn(bencher: Bencher<'_, '_>, history: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let layers = Pipeline::build(ten_layers(), Arc::new(Still)).expect("layers that can stand together");
    let log = transcript(history);
    let mut origin = Origin::default();
    origin.thread = Some("thread".into());
    origin.run = Some("run".into());
    let prepared =
        PreparedAgent::new("main", "You watch the tide.", [ToolDef::new("tide", "The tide at a pier")]);
    let cx = ViewCx::new(log.prefix(), Arc::new(origin), Time(0))
        .with_prepared(Arc::new(prepared))
        .until(None, Cancel::never());
    let prompt = Arc::new(Message::user("How high is the tide?"));
    let mut usage = Usage::tokens(900, 20);
    usage.cache_read = Some(800);
    let answer = Arc::new(AssistantMessage::text("It is high.").with_usage(usage).into());
    // The transcript was counted when its messages came.
    runtime.block_on(turn(&layers, &cx, &prompt, &answer));
    bencher.bench_local(|| runtime.block_on(turn(&layers, &cx, &prompt, &answer)));
}
