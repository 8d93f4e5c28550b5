//! What shapes the view: memory layers and compaction.

use std::sync::Arc;

use super::{BoxFuture, Judgement};
use crate::message::Message;
use crate::outcome::Fault;
use crate::transcript::{Plan, Prefix, View};

/// Memory layers, as the turn sees them: one pipeline with three hooks.
pub trait ContextPipeline: Send + Sync {
    /// Sees messages before they are appended and gives those that are appended instead.
    ///
    /// # Errors
    /// A fault lets the messages pass unchanged; it is an event.
    fn append(
        &self,
        messages: Vec<Arc<Message>>,
        log: &Prefix,
    ) -> impl Future<Output = Result<Vec<Arc<Message>>, Fault>> + Send;

    /// Gives the view of an iteration; `None` shows the whole transcript.
    ///
    /// # Errors
    /// A fault shows the whole transcript; it is an event.
    fn recall(
        &self,
        iteration: u32,
        log: &Prefix,
    ) -> impl Future<Output = Result<Option<Plan>, Fault>> + Send;

    /// Sees a model's answer before it counts. `Continue` appends the answer and asks again with the
    /// guidance.
    ///
    /// # Errors
    /// A fault accepts the answer; it is an event.
    fn after_model(
        &self,
        answer: &Arc<Message>,
        log: &Prefix,
    ) -> impl Future<Output = Result<Judgement, Fault>> + Send;
}

/// The object-safe twin of [`ContextPipeline`].
pub trait DynContextPipeline: Send + Sync {
    /// [`ContextPipeline::append`], boxed.
    fn append_boxed<'a>(
        &'a self,
        messages: Vec<Arc<Message>>,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Vec<Arc<Message>>, Fault>>;

    /// [`ContextPipeline::recall`], boxed.
    fn recall_boxed<'a>(
        &'a self,
        iteration: u32,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Option<Plan>, Fault>>;

    /// [`ContextPipeline::after_model`], boxed.
    fn after_model_boxed<'a>(
        &'a self,
        answer: &'a Arc<Message>,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Judgement, Fault>>;
}

impl<C: ContextPipeline> DynContextPipeline for C {
    fn append_boxed<'a>(
        &'a self,
        messages: Vec<Arc<Message>>,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Vec<Arc<Message>>, Fault>> {
        Box::pin(self.append(messages, log))
    }

    fn recall_boxed<'a>(
        &'a self,
        iteration: u32,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Option<Plan>, Fault>> {
        Box::pin(self.recall(iteration, log))
    }

    fn after_model_boxed<'a>(
        &'a self,
        answer: &'a Arc<Message>,
        log: &'a Prefix,
    ) -> BoxFuture<'a, Result<Judgement, Fault>> {
        Box::pin(self.after_model(answer, log))
    }
}

/// Makes the view shorter: the one owner of compaction.
pub trait Compactor: Send + Sync {
    /// The plan of the request about to be made; `None` leaves the view as it is.
    ///
    /// # Errors
    /// A fault leaves the view as it is; it is an event.
    fn plan(&self, view: &View) -> impl Future<Output = Result<Option<Plan>, Fault>> + Send;
}

/// The object-safe twin of [`Compactor`].
pub trait DynCompactor: Send + Sync {
    /// [`Compactor::plan`], boxed.
    fn plan_boxed<'a>(&'a self, view: &'a View) -> BoxFuture<'a, Result<Option<Plan>, Fault>>;
}

impl<C: Compactor> DynCompactor for C {
    fn plan_boxed<'a>(&'a self, view: &'a View) -> BoxFuture<'a, Result<Option<Plan>, Fault>> {
        Box::pin(self.plan(view))
    }
}
