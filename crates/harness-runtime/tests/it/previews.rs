//! A preview is the next request, and leaves nothing behind.

use std::sync::Arc;

use harness_core::decide::{CheckVerdict, Points, check};
use harness_core::message::{Message, UserMessage};
use harness_core::port::{
    CompactAsk, Compaction, CompactionNote, Compactor, ContextPipeline, DynCompactor, DynContextPipeline,
    ModelRequest, ViewCx,
};
use harness_core::transcript::{Plan, Span};
use harness_core::{Fault, Json, Origin, Outcome};
use harness_runtime::{RuntimeError, ThreadConfig};
use parking_lot::Mutex;

use crate::support::{Step, history, thread_with};

/// Shows how often it was asked, which it remembers.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Vec<&'static str>>>);

impl Counting {
    fn note(&self, what: &'static str) -> usize {
        let mut noted = self.0.lock();
        noted.push(what);
        noted.len()
    }

    fn apart(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }
}

impl ContextPipeline for Counting {
    async fn begin(&self, _: &ViewCx) -> Result<(), Fault> {
        self.note("begin");
        Ok(())
    }

    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        let made = Message::from(UserMessage::text(format!("asked {}", self.note("recall"))));
        let spans = [Span::Made(Arc::from([Arc::new(made)])), Span::Kept(0..usize::MAX)];
        assert!(!cx.log.is_empty());
        Ok(Some(Plan { spans: spans.into() }))
    }

    async fn complete(&self, _: Outcome, _: &ViewCx) -> Result<(), Fault> {
        self.note("complete");
        Ok(())
    }

    fn ahead(&self) -> Option<Arc<dyn DynContextPipeline>> {
        Some(Arc::new(self.apart()))
    }
}

/// Puts a numbered summary in the place of everything but the last message, when there are more than three.
#[derive(Clone, Default)]
struct Shortening(Counting);

impl Compactor for Shortening {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let shown = ask.view.len();
        if shown <= 3 {
            return Ok(ask.plan.map_or_else(Compaction::unchanged, Compaction::planned));
        }
        let made = Message::user(format!("summary {}", self.0.note("summary")));
        let last = ask.cx.log.len() - 1;
        let spans = [Span::Made(Arc::from([Arc::new(made)])), Span::Kept(last..usize::MAX)];
        let mut compaction = Compaction::planned(Plan { spans: spans.into() });
        compaction.note = Some(CompactionNote::default());
        Ok(compaction)
    }

    fn ahead(&self) -> Option<Arc<dyn DynCompactor>> {
        Some(Arc::new(Self(self.0.apart())))
    }
}

fn messages(request: &ModelRequest) -> Vec<Json> {
    let mut all = Vec::new();
    request.view.for_each(|message| all.push(Json::of(&**message).unwrap()));
    all
}

/// Prompts a thread four times, with a preview or three before each.
async fn check(change: impl FnOnce(&mut ThreadConfig)) {
    let (thread, model) = thread_with((0..4).map(|_| Step::Say("yes")), change);
    for prompt in ["one", "two", "three", "four"] {
        thread.steer(Message::user(format!("and {prompt}"))).unwrap();
        let mut previews = Vec::new();
        for _ in 0..3 {
            previews.push(thread.preview_request([Message::user(prompt)]).await.unwrap());
        }
        thread.prompt(Message::user(prompt)).await.unwrap();
        let next = model.requests().pop().unwrap();
        for preview in previews {
            assert_eq!(messages(&preview), messages(&next), "{prompt}");
            assert_eq!((&preview.prepared, preview.thinking), (&next.prepared, next.thinking));
        }
    }
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn layers_are_looked_at_and_remember_nothing_of_it() {
    let layers = Counting::default();
    check(|config| config.ports.layers = Some(Arc::new(layers.clone()))).await;
    assert_eq!(layers.0.lock().len(), 4 * 3, "four runs, each begun, asked and completed once");
}

#[tokio::test]
async fn a_compaction_in_force_and_one_that_is_due_are_shown_and_stay_as_they_are() {
    let compactor = Shortening::default();
    check(|config| config.ports.compactor = Some(Arc::new(compactor.clone()))).await;
    assert!(!compactor.0.0.lock().is_empty(), "something was made shorter");
}

#[tokio::test]
async fn all_of_it_together() {
    let guard = Counting::default();
    let seen = guard.clone();
    check(|config| {
        config.ports.layers = Some(Arc::new(Counting::default()));
        config.ports.compactor = Some(Arc::new(Shortening::default()));
        config.ports.checks = vec![check::func("passing", Points::PROMPT, move |_, _| {
            guard.note("guard");
            CheckVerdict::Accept
        })];
    })
    .await;
    assert_eq!(seen.0.lock().len(), 4, "checks are asked before real requests only");
}

#[tokio::test]
async fn calls_that_wait_are_no_request_yet() {
    use harness_core::message::{AssistantMessage, ToolCall};
    let (thread, _) = thread_with([Step::Say("x")], |config| config.origin = Origin::default());
    let call = ToolCall::new("c1", "t", Json::empty_object());
    thread.seed_history([Message::user("go"), AssistantMessage::calls([call]).into()]).await.unwrap();
    let refused = thread.preview_request([Message::user("now")]).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Part(fault)) if &*fault.code == "open_calls"),
        "{refused:?}"
    );
    assert_eq!(history(&thread).await, "u:go c:c1", "nothing was settled");
}
