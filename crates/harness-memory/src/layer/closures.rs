//! Small layers from closures.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::port::BoxFuture;

use super::ask::{
    AppendAsk, Appended, Called, Decided, DeltaAsk, Ending, RecallAsk, Recalled, ReturnAsk, Spawned,
    StoreAsk, ToolAsk, Update,
};
use super::cx::{Execution, LayerCx};
use super::def::{FunctionDef, Hook, LayerDef};
use super::history::History;
use super::hook::{Layer, stored};
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
        #[derive(Clone, derive_more::Debug)]
        pub struct FnLayer {
            def: LayerDef,
            #[debug(skip)]
            functions: Vec<(Arc<str>, FunctionFn)>,
            $( #[debug(skip)] $field: Option<HookFn<$arg, $out>>, )*
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
    returned / on_child_return: Return(ReturnAsk) -> Update;
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

/// Forwards a hook to its closure. Without one the layer does nothing.
macro_rules! forward {
    ($($name:ident/$field:ident($arg:ident: $arg_type:ty = $owned:expr) -> $out:ty { $default:expr })*) => {
        $(
            async fn $name(&self, $arg: $arg_type, cx: &LayerCx) -> Result<$out, MemoryError> {
                match &self.$field {
                    Some(hook) => hook($owned, cx.clone()).await,
                    None => Ok($default),
                }
            }
        )*
    };
}

impl Layer for FnLayer {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    forward! {
        init/init(storage: &ScopedStorage = storage.clone()) -> Update { stored(storage).await? }
        on_append/append(ask: AppendAsk = ask) -> Appended { Appended::items(ask.items) }
        recall/recall(ask: RecallAsk = ask) -> Recalled { Recalled::nothing() }
        project_history/project(history: History = history) -> History { history }
        after_model/after_model(answer: &Arc<Message> = Arc::clone(answer)) -> Decided { Decided::default() }
        before_tool/before_tool(ask: &ToolAsk = ask.clone()) -> Decided { Decided::default() }
        store/store(ask: StoreAsk = ask) -> Update { Update::Keep }
        spawn/spawn(child: &Execution = child.clone()) -> Option<Spawned> { None }
        on_return/returned(ask: ReturnAsk = ask) -> Update { Update::Keep }
        complete/complete(ending: Ending = ending) -> Update { Update::Keep }
        render_delta/render_delta(ask: DeltaAsk = ask) -> Option<String> { None }
    }

    async fn dispose(&self, cx: &LayerCx) -> Result<(), MemoryError> {
        match &self.dispose {
            Some(hook) => hook((), cx.clone()).await,
            None => Ok(()),
        }
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
