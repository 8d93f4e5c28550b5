//! The trait of a layer: its hooks.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::port::BoxFuture;
use harness_core::tool::ArgumentFault;

use super::ask::{
    AppendAsk, Appended, Called, Decided, DeltaAsk, Ending, RecallAsk, Recalled, ReturnAsk, Spawned,
    StoreAsk, ToolAsk, Update,
};
use super::cx::{Execution, LayerCx};
use super::def::LayerDef;
use super::history::History;
use super::storage::ScopedStorage;
use crate::MemoryError;

/// A memory layer: it learns from a run and contributes to the view.
///
/// A layer has no fields for state: its state is a JSON value that the pipeline keeps, hands over as a
/// snapshot in [`LayerCx::state`] and replaces by what the hook answers. A hook is asked only when the
/// [definition](LayerDef) names it. A hook that takes longer than its limit is dropped.
///
/// ```
/// use harness_core::Json;
/// use harness_memory::MemoryError;
/// use harness_memory::layer::{Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, StoreAsk, Update};
///
/// struct Count(LayerDef);
///
/// impl Layer for Count {
///     fn def(&self) -> &LayerDef {
///         &self.0
///     }
///
///     async fn recall(&self, _: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
///         let answers: u32 = cx.state_as()?;
///         Ok(Recalled::text(format!("You have answered {answers} times.")))
///     }
///
///     async fn store(&self, _: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
///         Update::set(&(cx.state_as::<u32>()? + 1))
///     }
/// }
///
/// let count = Count(LayerDef::new("count", 120, [Hook::Recall, Hook::Store]));
/// # let _ = count;
/// ```
pub trait Layer: Send + Sync {
    /// Definition of the layer; must not change.
    fn def(&self) -> &LayerDef;

    /// Once per execution, before anything else. The default loads the state stored under `state`.
    ///
    /// # Errors
    /// The run fails with it, or the layer is left out; see [`super::OnInitError`].
    fn init(
        &self,
        storage: &ScopedStorage,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Update, MemoryError>> + Send {
        stored(storage)
    }

    /// Messages are about to enter the transcript: prompts, tool results, steering; never a model's answer.
    ///
    /// # Errors
    /// Reported; the messages continue unchanged.
    fn on_append(
        &self,
        ask: AppendAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Appended, MemoryError>> + Send {
        async { Ok(Appended::items(ask.items)) }
    }

    /// The layer's content in the view of an iteration.
    ///
    /// # Errors
    /// Reported; the layer shows nothing.
    fn recall(
        &self,
        _ask: RecallAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Recalled, MemoryError>> + Send {
        async { Ok(Recalled::nothing()) }
    }

    /// Which part of the history is shown. It never changes the transcript.
    ///
    /// # Errors
    /// Reported; the history continues unchanged.
    fn project_history(
        &self,
        history: History,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<History, MemoryError>> + Send {
        async { Ok(history) }
    }

    /// A model has answered, and the answer does not count yet.
    ///
    /// # Errors
    /// Reported; the layer has no opinion.
    fn after_model(
        &self,
        _answer: &Arc<Message>,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Decided, MemoryError>> + Send {
        async { Ok(Decided::default()) }
    }

    /// A tool is about to run.
    ///
    /// # Errors
    /// Reported; the layer has no opinion or denies; see [`super::OnToolGateError`].
    fn before_tool(
        &self,
        _ask: &ToolAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Decided, MemoryError>> + Send {
        async { Ok(Decided::default()) }
    }

    /// An answer was accepted and is in the transcript: the time to learn. All layers are asked at once.
    ///
    /// # Errors
    /// Reported; other layers are not affected.
    fn store(
        &self,
        _ask: StoreAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Update, MemoryError>> + Send {
        async { Ok(Update::Keep) }
    }

    /// A child execution starts; `cx` is the parent's. `None`: the layer has no state in the child.
    ///
    /// # Errors
    /// Reported; the layer has no state in the child.
    fn spawn(
        &self,
        _child: &Execution,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Option<Spawned>, MemoryError>> + Send {
        async { Ok(None) }
    }

    /// A child execution succeeded; `cx` is the parent's.
    ///
    /// # Errors
    /// Reported; the parent's state stays.
    fn on_return(
        &self,
        _ask: ReturnAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Update, MemoryError>> + Send {
        async { Ok(Update::Keep) }
    }

    /// The execution ends.
    ///
    /// # Errors
    /// Reported.
    fn complete(
        &self,
        _ending: Ending,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Update, MemoryError>> + Send {
        async { Ok(Update::Keep) }
    }

    /// Releases resources of the execution.
    ///
    /// # Errors
    /// Reported.
    fn dispose(&self, _cx: &LayerCx) -> impl Future<Output = Result<(), MemoryError>> + Send {
        async { Ok(()) }
    }

    /// Says in few words what changed since `ask.prev`; `None` shows the new content whole.
    ///
    /// # Errors
    /// Reported; the new content is shown whole.
    fn render_delta(
        &self,
        _ask: DeltaAsk,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Option<String>, MemoryError>> + Send {
        async { Ok(None) }
    }

    /// Checks the arguments of a function before it is called. The default accepts all.
    ///
    /// # Errors
    /// The wrong field and what was expected; the model reads it.
    fn check_call(&self, _function: &str, _arguments: &Json) -> Result<(), ArgumentFault> {
        Ok(())
    }

    /// Calls one of [`LayerDef::functions`]. Calls of one layer in one execution come one after another.
    ///
    /// # Errors
    /// What the caller, often a model, reads; the state stays.
    fn call(
        &self,
        function: &str,
        _arguments: Json,
        _cx: &LayerCx,
    ) -> impl Future<Output = Result<Called, MemoryError>> + Send {
        let fault = MemoryError::failed(format!("the function `{function}` is declared but not there"));
        async { Err(fault) }
    }
}

/// The state that is stored for a layer.
pub(super) async fn stored(storage: &ScopedStorage) -> Result<Update, MemoryError> {
    Ok(storage.get(ScopedStorage::STATE).await?.map_or(Update::Keep, Update::Set))
}

macro_rules! dyn_layer {
    ($( $(#[$doc:meta])* fn $boxed:ident = $name:ident( $($arg:ident: $ty:ty),* ) -> $out:ty; )*) => {
        /// The object-safe twin of [`Layer`].
        pub trait DynLayer: Send + Sync {
            /// [`Layer::def`].
            fn layer_def(&self) -> &LayerDef;

            /// [`Layer::check_call`].
            ///
            /// # Errors
            /// As there.
            fn check_call_dyn(&self, function: &str, arguments: &Json) -> Result<(), ArgumentFault>;

            $(
                $(#[$doc])*
                fn $boxed<'a>(&'a self, $($arg: $ty,)* cx: &'a LayerCx)
                    -> BoxFuture<'a, Result<$out, MemoryError>>;
            )*
        }

        impl<L: Layer> DynLayer for L {
            fn layer_def(&self) -> &LayerDef {
                self.def()
            }

            fn check_call_dyn(&self, function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
                self.check_call(function, arguments)
            }

            $(
                fn $boxed<'a>(&'a self, $($arg: $ty,)* cx: &'a LayerCx)
                    -> BoxFuture<'a, Result<$out, MemoryError>>
                {
                    Box::pin(self.$name($($arg,)* cx))
                }
            )*
        }
    };
}

dyn_layer! {
    /// [`Layer::init`], boxed.
    fn init_boxed = init(storage: &'a ScopedStorage) -> Update;
    /// [`Layer::on_append`], boxed.
    fn on_append_boxed = on_append(ask: AppendAsk) -> Appended;
    /// [`Layer::recall`], boxed.
    fn recall_boxed = recall(ask: RecallAsk) -> Recalled;
    /// [`Layer::project_history`], boxed.
    fn project_history_boxed = project_history(history: History) -> History;
    /// [`Layer::after_model`], boxed.
    fn after_model_boxed = after_model(answer: &'a Arc<Message>) -> Decided;
    /// [`Layer::before_tool`], boxed.
    fn before_tool_boxed = before_tool(ask: &'a ToolAsk) -> Decided;
    /// [`Layer::store`], boxed.
    fn store_boxed = store(ask: StoreAsk) -> Update;
    /// [`Layer::spawn`], boxed.
    fn spawn_boxed = spawn(child: &'a Execution) -> Option<Spawned>;
    /// [`Layer::on_return`], boxed.
    fn on_return_boxed = on_return(ask: ReturnAsk) -> Update;
    /// [`Layer::complete`], boxed.
    fn complete_boxed = complete(ending: Ending) -> Update;
    /// [`Layer::dispose`], boxed.
    fn dispose_boxed = dispose() -> ();
    /// [`Layer::render_delta`], boxed.
    fn render_delta_boxed = render_delta(ask: DeltaAsk) -> Option<String>;
    /// [`Layer::call`], boxed.
    fn call_boxed = call(function: &'a str, arguments: Json) -> Called;
}
