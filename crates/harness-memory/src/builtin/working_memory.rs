//! Working memory: what the agent keeps in mind, as a text or an object that it updates itself.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::tool::{ArgumentFault, RetryClass};

use super::text::fenced;
use super::tree::{Tree, put};
use crate::MemoryError;
use crate::layer::{
    Called, Execution, FunctionDef, Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, Scope,
    ScopedStorage, Spawned, StoreAsk, Update, slot,
};

/// The tool call that updates working memory without the layer's function.
const IMPLICIT_TOOL: &str = "updateWorkingMemory";

/// Judges whether a value may be the working memory; an error says why not.
pub type StateCheck = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

/// Working memory (a scratchpad): a text or an object that stays in the view and that
/// the agent updates through the function `update`, which merges.
///
/// What is in it is shown whole, whatever its budget.
///
/// ```
/// use harness_memory::builtin::WorkingMemory;
/// use harness_memory::layer::{Layer as _, Scope};
///
/// let layer = WorkingMemory::new().in_scope(Scope::Resource);
/// assert_eq!(layer.def().id.as_str(), "scratchpad");
/// ```
#[derive(Clone)]
pub struct WorkingMemory {
    def: LayerDef,
    schema: Option<StateCheck>,
    read_only: bool,
}

impl fmt::Debug for WorkingMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkingMemory")
            .field("def", &self.def)
            .field("has_schema", &self.schema.is_some())
            .field("read_only", &self.read_only)
            .finish()
    }
}

impl WorkingMemory {
    /// Working memory of a thread, without a schema.
    pub fn new() -> Self {
        let hooks = [Hook::Init, Hook::Recall, Hook::Store, Hook::Spawn];
        let update = FunctionDef::new(
            "update",
            "Merges an object into working memory: objects are merged key by key, lists and single values \
             replace what was there. Use it to remember what matters for the rest of the conversation.",
        )
        .with_class(RetryClass::Idempotent)
        .with_input(Json::parse(r#"{"type":"object","additionalProperties":true}"#).unwrap_or_default());
        let def = LayerDef::new("scratchpad", slot::WORKING_MEMORY, hooks)
            .with_scope(Scope::Thread)
            .with_range(200, 1_500)
            .with_function(update);
        Self { def, schema: None, read_only: false }
    }

    /// The same, kept in another scope.
    #[must_use]
    pub fn in_scope(self, scope: Scope) -> Self {
        Self { def: self.def.with_scope(scope), ..self }
    }

    /// The same, where only values that `check` accepts may be kept: a stored one that it refuses is
    /// dropped, an update whose outcome it refuses changes nothing.
    #[must_use]
    pub fn with_schema(self, check: StateCheck) -> Self {
        Self { schema: Some(check), ..self }
    }

    /// The same, changed by its function only, and not by a call of `updateWorkingMemory`.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    fn accepts(&self, state: &Json) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |check| check(state))
    }

    /// `state` with `update` merged into it.
    ///
    /// # Errors
    /// When the schema refuses the outcome.
    fn updated(&self, state: Option<&Json>, update: &Json) -> Result<Json, MemoryError> {
        let old = state.map_or_else(|| Tree::Object(Vec::new()), Tree::of);
        let previous = match &old {
            Tree::Text(text) if !text.is_empty() => Some(old.clone()),
            Tree::Text(_) | Tree::Leaf(_) | Tree::List(_) | Tree::Object(_) => None,
        };
        let mut new = match old {
            object @ Tree::Object(_) => object.merged(Tree::of(update)),
            Tree::Text(_) | Tree::Leaf(_) | Tree::List(_) => {
                Tree::Object(Vec::new()).merged(Tree::of(update))
            }
        };
        if let (Tree::Object(entries), Some(previous)) = (&mut new, previous) {
            put(entries, "_previous".to_owned(), previous);
        }
        let new = new.json();
        self.accepts(&new).map_err(|problem| {
            MemoryError::failed(format!("{} update rejected by schema: {problem}", self.def.id))
        })?;
        Ok(new)
    }
}

impl Default for WorkingMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for WorkingMemory {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, storage: &ScopedStorage, _cx: &LayerCx) -> Result<Update, MemoryError> {
        let nothing = || if self.schema.is_some() { Json::empty_object() } else { Json::string("") };
        let stored = storage.get(ScopedStorage::STATE).await?;
        Ok(Update::Set(match stored {
            Some(state) if self.accepts(&state).is_ok() => state,
            Some(_) => Json::empty_object(),
            None => nothing(),
        }))
    }

    async fn recall(&self, _ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let tree = cx.state.as_ref().map(Tree::of);
        Ok(match tree {
            None => Recalled::nothing(),
            Some(tree) if tree.is_empty() => Recalled::nothing(),
            Some(Tree::Text(text)) => Recalled::text(fenced("working_memory", &text)),
            Some(tree) => Recalled::text(fenced("working_memory", &tree.pretty())),
        })
    }

    async fn store(&self, ask: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        if self.read_only {
            return Ok(Update::Keep);
        }
        let Message::Assistant(answer) = &*ask.answer else { return Ok(Update::Keep) };
        let call = answer.tool_calls().find(|call| call.name == IMPLICIT_TOOL);
        match call {
            Some(call) if call.arguments.is_object() => {
                self.updated(cx.state.as_ref(), &call.arguments).map(Update::Set)
            }
            Some(_) | None => Ok(Update::Keep),
        }
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        let shared = self.def.scope == Scope::Resource;
        Ok(cx.state.clone().filter(|_| shared).map(Spawned::state))
    }

    fn check_call(&self, _function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
        if arguments.is_object() { Ok(()) } else { Err(ArgumentFault::new("", "an object is expected")) }
    }

    async fn call(&self, _function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        let state = self.updated(cx.state.as_ref(), &arguments)?;
        Ok(Called::new(state.clone()).with_state(Update::Set(state)))
    }
}
