//! Functions and data of layers, for the host and the model.

use std::sync::Arc;

use harness_core::Json;
use harness_core::port::ViewCx;
use harness_core::tool::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::transcript::Prefix;

use super::ask::Called;
use super::def::LayerId;
use super::pipeline::Pipeline;
use super::run::LayerRun;
use super::stack::tool_name;
use crate::MemoryError;

impl Pipeline {
    /// Calls a function of a layer. Calls of one layer in one execution come one after another, each with
    /// the state that the one before it left.
    ///
    /// # Errors
    /// When there is no such execution, layer or function, the arguments are wrong, or the function fails.
    pub async fn call(
        &self,
        execution: &str,
        layer: &LayerId,
        function: &str,
        arguments: Json,
        cx: &ViewCx,
    ) -> Result<Json, MemoryError> {
        let (run, at) = (self.run(execution)?, self.position(layer)?);
        run.call(at, function, arguments, cx).await
    }

    /// The functions of all layers as tools `LAYER_FUNCTION`, in the order of declaration, and then the
    /// [tools](super::LayerSetup::with_tools) that belong to the memory beside them.
    pub fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        let layers = self.stack().layers.iter().enumerate();
        let tools = layers.flat_map(|(at, layer)| {
            let def = layer.layer_def();
            def.functions.iter().map(move |function| {
                let name = tool_name(&def.id, &function.name);
                let mut tool =
                    ToolDef::new(name, Arc::clone(&function.description)).with_class(function.class);
                tool.input_schema.clone_from(&function.input_schema);
                (tool.requires_approval, tool.internal) = (function.requires_approval, true);
                (at, Arc::clone(&function.name), tool)
            })
        });
        let tool = |(at, function, def)| {
            Arc::new(LayerTool { pipeline: self.clone(), at, function, def }) as Arc<dyn DynTool>
        };
        tools.map(tool).chain(self.stack().tools.iter().cloned()).collect()
    }
}

impl LayerRun {
    async fn call(
        &self,
        at: usize,
        function: &str,
        arguments: Json,
        cx: &ViewCx,
    ) -> Result<Json, MemoryError> {
        let (Some(layer), Some(caller)) = (self.stack.layers.get(at), self.callers.get(at)) else {
            return Err(MemoryError::failed("the layer is not there"));
        };
        let def = layer.layer_def();
        if !def.functions.iter().any(|known| *known.name == *function) {
            return Err(MemoryError::UnknownFunction { id: def.id.clone(), function: function.to_owned() });
        }
        if self.is_skipped(at) {
            return Err(MemoryError::failed(format!("the layer `{}` is left out of this execution", def.id)));
        }
        layer.check_call_dyn(function, &arguments).map_err(|fault| MemoryError::failed(fault.to_string()))?;
        let _alone = caller.lock().await;
        let cx = self.cx_of(at, &self.cx(cx));
        let Called { result, state } = self.wait(None, layer.call_boxed(function, arguments, &cx)).await?;
        self.apply(at, state);
        self.flush().await;
        Ok(result)
    }
}

/// A function of a layer as a tool.
#[derive(derive_more::Debug)]
struct LayerTool {
    #[debug(skip)]
    pipeline: Pipeline,
    at: usize,
    function: Arc<str>,
    def: ToolDef,
}

impl Tool for LayerTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        let layer = self.pipeline.stack().layers.get(self.at);
        layer.map_or(Ok(()), |layer| layer.check_call_dyn(&self.function, arguments))
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let now = self.pipeline.stack().clock.now();
        let arguments = cx.call.arguments.clone();
        let view = ViewCx::new(Prefix::default(), Arc::clone(&cx.origin), now)
            .with_ledger(cx.ledger)
            .until(cx.deadline, cx.cancel);
        let run = self.pipeline.open(Pipeline::execution_of(&view.origin), &view).await;
        let called = match run {
            Ok(run) => run.call(self.at, &self.function, arguments, &view).await,
            Err(fault) => Err(fault),
        };
        match called {
            Ok(result) => match result.to::<String>() {
                Ok(text) => ToolOutcome::text(text),
                Err(_) => ToolOutcome::structured(result),
            },
            Err(fault) => ToolOutcome::error(fault.kind(), fault.to_string()),
        }
    }
}
