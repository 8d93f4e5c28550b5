//! Small layers from closures.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::port::BoxFuture;

use super::ask::{
    AppendAsk, Appended, Called, Decided, DeltaAsk, Ending, RecallAsk, Recalled, ReturnAsk, Returned,
    Spawned, StoreAsk, ToolAsk, Update,
};
use super::cx::{Execution, LayerCx};
use super::def::{FunctionDef, Hook, LayerDef};
use super::history::History;
use super::hook::Layer;
use super::storage::ScopedStorage;
use crate::MemoryError;

type Answer<T> = BoxFuture<'static, Result<T, MemoryError>>;
type HookFn<A, T> = Arc<dyn Fn(A, LayerCx) -> Answer<T> + Send + Sync>;
type FunctionFn = HookFn<Json, Called>;

macro_rules! fn_layer {
    ($( $(#[$doc:meta])* $field:ident / $with:ident: $hook:ident($arg:ty) -> $out:ty; )*) => {
        /// A layer whose hooks are closures. Adding a closure adds its hook to the definition.
        ///
        /// ```
        /// use harness_memory::layer::{FnLayer, LayerDef, Recalled};
        ///
        /// let date = FnLayer::new(LayerDef::new("date", 90, []))
        ///     .on_recall(|_, cx| async move { Ok(Recalled::text(format!("It is {}.", cx.now))) });
        /// # let _ = date;
        /// ```
        #[derive(Clone)]
        pub struct FnLayer {
            def: LayerDef,
            functions: Vec<(Arc<str>, FunctionFn)>,
            $( $field: Option<HookFn<$arg, $out>>, )*
        }

        impl FnLayer {
            /// A layer without hooks; those that `def` names and that get no closure do nothing.
            pub fn new(def: LayerDef) -> Self {
                Self { def, functions: Vec::new(), $( $field: None, )* }
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub fn $with<F, T>(mut self, hook: F) -> Self
                where
                    F: Fn($arg, LayerCx) -> T + Send + Sync + 'static,
                    T: Future<Output = Result<$out, MemoryError>> + Send + 'static,
                {
                    self.def = self.def.with_hook(Hook::$hook);
                    self.$field = Some(Arc::new(move |ask, cx| Box::pin(hook(ask, cx))));
                    self
                }
            )*
        }
    };
}

fn_layer! {
    /// Sets `init`: called once per execution, before anything else.
    init / on_init: Init(ScopedStorage) -> Update;
    /// Sets `on_append`: messages before they enter the transcript.
    append / on_append: Append(AppendAsk) -> Appended;
    /// Sets `recall`: the layer's part of a view.
    recall / on_recall: Recall(RecallAsk) -> Recalled;
    /// Which history is shown.
    project / on_project_history: ProjectHistory(History) -> History;
    /// Sets `after_model`: the decision on an answer.
    after_model / on_after_model: AfterModel(Arc<Message>) -> Decided;
    /// Sets `before_tool`: the decision on a tool call.
    before_tool / on_before_tool: BeforeTool(ToolAsk) -> Decided;
    /// Sets `store`: called after an accepted answer.
    store / on_store: Store(StoreAsk) -> Update;
    /// Sets `spawn`: the start of a child.
    spawn / on_spawn: Spawn(Execution) -> Option<Spawned>;
    /// Sets `on_return`: called after a child's success.
    returned / on_child_return: Return(ReturnAsk) -> Returned;
    /// Sets `complete`: called at the end of an execution.
    complete / on_complete: Complete(Ending) -> Update;
    /// Sets `dispose`: releases resources at the end.
    dispose / on_dispose: Dispose(()) -> ();
    /// Sets `render_delta`: the text of a change.
    render_delta / on_render_delta: RenderDelta(DeltaAsk) -> Option<String>;
}

impl FnLayer {
    /// Adds a function.
    #[must_use]
    pub fn with_function<F, T>(mut self, def: FunctionDef, call: F) -> Self
    where
        F: Fn(Json, LayerCx) -> T + Send + Sync + 'static,
        T: Future<Output = Result<Called, MemoryError>> + Send + 'static,
    {
        self.functions.push((Arc::clone(&def.name), Arc::new(move |args, cx| Box::pin(call(args, cx)))));
        self.def = self.def.with_function(def);
        self
    }
}

impl std::fmt::Debug for FnLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FnLayer").field("def", &self.def).finish_non_exhaustive()
    }
}

/// The answer of a closure, or what a layer without it answers.
async fn ask<A, T>(
    hook: Option<&HookFn<A, T>>,
    question: A,
    cx: &LayerCx,
    default: T,
) -> Result<T, MemoryError> {
    match hook {
        Some(hook) => hook(question, cx.clone()).await,
        None => Ok(default),
    }
}

impl Layer for FnLayer {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, storage: &ScopedStorage, cx: &LayerCx) -> Result<Update, MemoryError> {
        match &self.init {
            Some(hook) => hook(storage.clone(), cx.clone()).await,
            None => Ok(storage.get(ScopedStorage::STATE).await?.map_or(Update::Keep, Update::Set)),
        }
    }

    async fn on_append(&self, question: AppendAsk, cx: &LayerCx) -> Result<Appended, MemoryError> {
        match &self.append {
            Some(hook) => hook(question, cx.clone()).await,
            None => Ok(Appended::items(question.items)),
        }
    }

    async fn recall(&self, question: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        ask(self.recall.as_ref(), question, cx, Recalled::nothing()).await
    }

    async fn project_history(&self, history: History, cx: &LayerCx) -> Result<History, MemoryError> {
        match &self.project {
            Some(hook) => hook(history, cx.clone()).await,
            None => Ok(history),
        }
    }

    async fn after_model(&self, answer: &Arc<Message>, cx: &LayerCx) -> Result<Decided, MemoryError> {
        ask(self.after_model.as_ref(), Arc::clone(answer), cx, Decided::default()).await
    }

    async fn before_tool(&self, question: &ToolAsk, cx: &LayerCx) -> Result<Decided, MemoryError> {
        ask(self.before_tool.as_ref(), question.clone(), cx, Decided::default()).await
    }

    async fn store(&self, question: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        ask(self.store.as_ref(), question, cx, Update::Keep).await
    }

    async fn spawn(&self, child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        ask(self.spawn.as_ref(), child.clone(), cx, None).await
    }

    async fn on_return(&self, question: ReturnAsk, cx: &LayerCx) -> Result<Returned, MemoryError> {
        ask(self.returned.as_ref(), question, cx, Returned::default()).await
    }

    async fn complete(&self, ending: Ending, cx: &LayerCx) -> Result<Update, MemoryError> {
        ask(self.complete.as_ref(), ending, cx, Update::Keep).await
    }

    async fn dispose(&self, cx: &LayerCx) -> Result<(), MemoryError> {
        ask(self.dispose.as_ref(), (), cx, ()).await
    }

    async fn render_delta(&self, question: DeltaAsk, cx: &LayerCx) -> Result<Option<String>, MemoryError> {
        ask(self.render_delta.as_ref(), question, cx, None).await
    }

    async fn call(&self, function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        match self.functions.iter().find(|(name, _)| **name == *function) {
            Some((_, call)) => call(arguments, cx.clone()).await,
            None => {
                Err(MemoryError::UnknownFunction { id: self.def.id.clone(), function: function.to_owned() })
            }
        }
    }
}
