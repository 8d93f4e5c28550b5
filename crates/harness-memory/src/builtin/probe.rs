//! One layer by itself.

use std::sync::Arc;

use harness_core::message::{Message, ToolCall};
use harness_core::port::AppendSource;
use harness_core::tool::ToolDef;
use harness_core::transcript::Prefix;
use harness_core::{Json, Time};

use crate::MemoryError;
use crate::layer::{
    AppendAsk, Appended, Content, Decision, Ending, Execution, Layer, LayerCx, RecallAsk, ReturnAsk,
    ScopedStorage, StoreAsk, ToolAsk, Update,
};

/// Asks the hooks of one layer by hand and keeps its state in between: for tests of layers and for trying
/// them. It has no limits of time and writes nothing anywhere; that is the pipeline's work.
///
/// ```
/// use harness_core::Json;
/// use harness_memory::builtin::{LayerProbe, Scratchpad};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut probe = LayerProbe::new(Scratchpad::new());
/// probe.call("update", Json::parse(r#"{"goal":"ship"}"#)?).await?;
/// assert_eq!(probe.recall("", 100).await?, "<working_memory>\n{\n  \"goal\": \"ship\"\n}\n</working_memory>");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LayerProbe<L> {
    layer: L,
    /// Context of the hooks: time, execution, model, transcript, state.
    pub cx: LayerCx,
}

impl<L: Layer> LayerProbe<L> {
    /// A layer that was not initialised, in the execution `probe` at time 0.
    pub fn new(layer: L) -> Self {
        let cx = LayerCx::new(Arc::new(Execution::new("probe")), Prefix::default(), Time(0));
        Self { layer, cx }
    }

    /// Layer under test.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    fn update(&mut self, update: Update) {
        match update {
            Update::Keep => {}
            Update::Set(state) => self.cx.state = Some(state),
            Update::Clear => self.cx.state = None,
        }
    }

    /// Initialises it with nothing stored.
    ///
    /// # Errors
    /// As the layer's `init`.
    pub async fn init(&mut self) -> Result<(), MemoryError> {
        let def = self.layer.def();
        let storage = ScopedStorage::new(None, &def.id, def.scope, &self.cx.execution);
        let update = self.layer.init(&storage, &self.cx).await?;
        self.update(update);
        Ok(())
    }

    /// Lets messages enter the transcript; what enters, and what the layer asks for.
    ///
    /// # Errors
    /// As the layer's `on_append`.
    pub async fn append(
        &mut self,
        source: AppendSource,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Appended, MemoryError> {
        let items = messages.into_iter().map(Arc::new).collect();
        let appended = self.layer.on_append(AppendAsk { source, items }, &self.cx).await?;
        self.update(appended.state.clone());
        Ok(appended)
    }

    /// Recalls the layer: its content as text, empty when it shows nothing.
    ///
    /// # Errors
    /// As the layer's `recall`.
    pub async fn recall(&mut self, query: &str, budget: u64) -> Result<String, MemoryError> {
        let recalled = self.layer.recall(RecallAsk::new(query, budget), &self.cx).await?;
        self.update(recalled.state);
        Ok(match recalled.content {
            Content::Nothing => String::new(),
            Content::Text(text) => text,
            Content::Items(items) => {
                items.iter().map(|item| item.joined_text()).collect::<Vec<_>>().join("\n")
            }
        })
    }

    /// Passes an accepted answer to the layer.
    ///
    /// # Errors
    /// As the layer's `store`.
    pub async fn store(&mut self, answer: impl Into<Message>) -> Result<(), MemoryError> {
        let answer = Arc::new(answer.into());
        let update = self
            .layer
            .store(StoreAsk { answer: Arc::clone(&answer), new_items: vec![answer] }, &self.cx)
            .await?;
        self.update(update);
        Ok(())
    }

    /// Asks about an answer.
    ///
    /// # Errors
    /// As the layer's `after_model`.
    pub async fn after_model(&mut self, answer: impl Into<Message>) -> Result<Decision, MemoryError> {
        let decided = self.layer.after_model(&Arc::new(answer.into()), &self.cx).await?;
        self.update(decided.state);
        Ok(decided.decision)
    }

    /// Asks about a call of a tool.
    ///
    /// # Errors
    /// As the layer's `before_tool`.
    pub async fn before_tool(&mut self, tool: ToolDef, arguments: Json) -> Result<Decision, MemoryError> {
        let call = Arc::new(ToolCall::new("call", tool.name.clone(), arguments));
        let decided = self.layer.before_tool(&ToolAsk::new(call, tool), &self.cx).await?;
        self.update(decided.state);
        Ok(decided.decision)
    }

    /// Calls one of its functions, after its check of the arguments.
    ///
    /// # Errors
    /// When the arguments are wrong, or as the layer's `call`.
    pub async fn call(&mut self, function: &str, arguments: Json) -> Result<Json, MemoryError> {
        let checked = self.layer.check_call(function, &arguments);
        checked.map_err(|fault| MemoryError::failed(fault.to_string()))?;
        let called = self.layer.call(function, arguments, &self.cx).await?;
        self.update(called.state);
        Ok(called.result)
    }

    /// Returns a child that ended with this state of the layer.
    ///
    /// # Errors
    /// As the layer's `on_return`.
    pub async fn take_back(&mut self, child: &str, state: Json) -> Result<(), MemoryError> {
        let child = Arc::new(self.cx.execution.child(child));
        let ask = ReturnAsk { child, child_state: state, child_log: Prefix::default(), result: None };
        let update = self.layer.on_return(ask, &self.cx).await?;
        self.update(update);
        Ok(())
    }

    /// Ends the execution.
    ///
    /// # Errors
    /// As the layer's `complete` and `dispose`.
    pub async fn complete(&mut self, ending: Ending) -> Result<(), MemoryError> {
        let update = self.layer.complete(ending, &self.cx).await?;
        self.update(update);
        self.layer.dispose(&self.cx).await
    }
}
