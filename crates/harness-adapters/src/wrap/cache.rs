//! Answers the same request once.

use std::fmt;
use std::sync::Arc;

use harness_core::canonical::sha256_hex;
use harness_core::message::{AssistantMessage, FinishReason, Usage};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest, PreparedAgent};
use harness_record::traffic::request_form;
use lru::LruCache;
use parking_lot::Mutex;

/// How much a cache keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachePolicy {
    /// Answers; the one that was used longest ago goes first. Default 1,000. 0 keeps none.
    pub answers: usize,
    /// Bytes of answer texts and arguments together. Default 64 MiB.
    pub bytes: usize,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self { answers: 1_000, bytes: 64 << 20 }
    }
}

/// Wraps a model and keeps its answers in memory: equal requests are sent once.
///
/// Requests are equal if the model sees the same: model, settings, instructions, messages, tools. Only
/// whole answers are kept, none that failed, were truncated or are invalid. A cached answer reports no
/// requests and no tokens. Intended for tests and evaluations; calls in an answer run again. Clones share
/// the cache.
///
/// ```
/// use harness_adapters::{CachePolicy, ResponseCache};
/// # use harness_core::{message::AssistantMessage, port::{Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let model = ResponseCache::new(Hosted, CachePolicy::default());
/// ```
#[derive(Clone)]
pub struct ResponseCache<M> {
    inner: M,
    policy: CachePolicy,
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    /// Answers and their sizes.
    answers: LruCache<String, (AssistantMessage, usize)>,
    bytes: usize,
}

impl<M> ResponseCache<M> {
    /// Wraps `inner` with an empty cache.
    pub fn new(inner: M, policy: CachePolicy) -> Self {
        let kept = Kept { answers: LruCache::unbounded(), bytes: 0 };
        Self { inner, policy, kept: Arc::new(Mutex::new(kept)) }
    }

    fn with_kept<T>(&self, f: impl FnOnce(&mut Kept) -> T) -> T {
        f(&mut self.kept.lock())
    }
}

impl Kept {
    fn put(&mut self, key: String, answer: AssistantMessage, policy: CachePolicy) {
        let size = size(&answer);
        if policy.answers == 0 || size > policy.bytes || self.answers.contains(&key) {
            return;
        }
        self.bytes += size;
        self.answers.put(key, (answer, size));
        while self.answers.len() > policy.answers || self.bytes > policy.bytes {
            let Some((_, (_, size))) = self.answers.pop_lru() else { return };
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}

/// Size of an answer.
fn size(answer: &AssistantMessage) -> usize {
    let calls: usize = answer.tool_calls().map(|call| call.arguments.text().len()).sum();
    answer.joined_text().len() + calls
}

fn is_whole(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, FinishReason::Stop | FinishReason::ToolUse)
}

impl<M> fmt::Debug for ResponseCache<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<M: Model> Model for ResponseCache<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        // A request without a canonical form is asked; it is not the cache's to refuse.
        let Ok(form) = request_form(&request) else { return self.inner.step(request, deltas).await };
        let key = sha256_hex(form.text());
        if let Some(mut answer) =
            self.with_kept(|kept| kept.answers.get(&key).map(|(answer, _)| answer.clone()))
        {
            let mut usage = Usage::tokens(0, 0);
            usage.requests = Some(0);
            answer.usage = Some(Arc::new(usage));
            let text = answer.joined_text();
            if !text.is_empty() {
                deltas.part(DeltaPart::Text(text));
            }
            return Ok(answer);
        }
        let answer = self.inner.step(request, deltas).await?;
        if is_whole(&answer) {
            self.with_kept(|kept| kept.put(key, answer.clone(), self.policy));
        }
        Ok(answer)
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
