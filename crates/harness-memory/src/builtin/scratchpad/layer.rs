//! The layer of the scratchpad.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::tool::{ArgumentFault, RetryClass};

use super::super::arguments::{check, function, parsed};
use super::super::text::fenced;
use super::super::tree::{Tree, put};
use super::notes::{Edit, List, NoteBounds, Notes, Read, Write};
use crate::MemoryError;
use crate::layer::{
    Called, Execution, FunctionDef, Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, Scope,
    ScopedStorage, Spawned, StoreAsk, Update,
};

/// Tool call that updates the content without the layer's function.
const IMPLICIT_TOOL: &str = "updateWorkingMemory";
/// Key of the notes in the state.
const NOTES: &str = "_notes";

/// Check of the content of a scratchpad; an error is the reason for the rejection.
pub type StateCheck = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

/// A scratchpad of the agent: content, a text or an object, that stays in view and that the function `update` merges
/// into; and, with [`with_notes`](Self::with_notes), notes by path, of which the view lists the paths.
///
/// The content is shown whole, whatever its budget.
///
/// ```
/// use harness_memory::builtin::Scratchpad;
/// use harness_memory::layer::{Layer as _, Scope};
///
/// let mut layer = Scratchpad::new();
/// layer.def.scope = Scope::Resource;
/// assert_eq!(layer.def().id.as_str(), "scratchpad");
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct Scratchpad {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    /// Check of the content. A stored value that it rejects is dropped; an update with a rejected result changes
    /// nothing. Default none.
    #[debug(skip)]
    pub schema: Option<StateCheck>,
    /// Whether calls of a tool `updateWorkingMemory` are ignored, so that only the function changes it. Default false.
    pub read_only: bool,
    /// Bounds of the notes.
    pub notes: NoteBounds,
}

impl Scratchpad {
    /// Scratchpad of a thread, without notes and schema.
    pub fn new() -> Self {
        let hooks = [Hook::Init, Hook::Recall, Hook::Store, Hook::Spawn];
        let update = FunctionDef::new(
            "update",
            "Merges an object into working memory: objects are merged key by key, lists and single values \
             replace the earlier ones. Use it to remember what matters for the rest of the conversation.",
        )
        .with_class(RetryClass::Idempotent)
        .with_input(Json::parse(r#"{"type":"object","additionalProperties":true}"#).unwrap_or_default());
        let def = LayerDef::new("scratchpad", 100, hooks)
            .with_scope(Scope::Thread)
            .with_range(200, 1_500)
            .with_function(update);
        Self { def, schema: None, read_only: false, notes: NoteBounds::default() }
    }

    /// Adds notes: the functions `list`, `read`, `write` and `edit`.
    #[must_use]
    pub fn with_notes(mut self) -> Self {
        let functions = [
            function::<List>("list", "Lists the notes.").with_class(RetryClass::Pure),
            function::<Read>("read", "Reads a note.").with_class(RetryClass::Pure),
            function::<Write>("write", "Writes a note; its earlier content is replaced."),
            function::<Edit>("edit", "Replaces a text in a note."),
        ];
        self.def = functions.into_iter().fold(self.def, LayerDef::with_function);
        self
    }

    fn accepts(&self, state: &Json) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |check| check(state))
    }

    /// Merges `update` into the content of `state`. Notes are not part of the content.
    ///
    /// # Errors
    /// The schema rejects the result.
    fn updated(&self, state: Option<&Json>, update: &Json) -> Result<(Json, Json), MemoryError> {
        let (old, notes) = split(state);
        let previous = match &old {
            Tree::Text(text) if !text.is_empty() => Some(old.clone()),
            Tree::Text(_) | Tree::Leaf(_) | Tree::List(_) | Tree::Object(_) => None,
        };
        let (update, _) = split(Some(update));
        let mut new = match old {
            object @ Tree::Object(_) => object.merged(update),
            Tree::Text(_) | Tree::Leaf(_) | Tree::List(_) => Tree::Object(Vec::new()).merged(update),
        };
        if let (Tree::Object(entries), Some(previous)) = (&mut new, previous) {
            put(entries, "_previous".to_owned(), previous);
        }
        let content = new.json();
        self.accepts(&content).map_err(|problem| {
            MemoryError::failed(format!("{} update rejected by schema: {problem}", self.def.id))
        })?;
        Ok((content, joined(new, &notes)))
    }

    /// Calls a function of the notes; returns its result and whether the notes changed.
    fn call_notes(
        &self,
        name: &str,
        arguments: &Json,
        notes: &mut Notes,
    ) -> Result<(Json, bool), MemoryError> {
        let failed = |message: String| MemoryError::failed(message);
        Ok(match name {
            "list" => (notes.list(&parsed::<List>(arguments)?.prefix), false),
            "read" => (Json::string(notes.read(&parsed::<Read>(arguments)?.path).map_err(failed)?), false),
            "write" => {
                let Write { path, content } = parsed(arguments)?;
                (notes.write(&path, content, self.notes).map_err(failed)?, true)
            }
            _ => (notes.edit(&parsed(arguments)?, self.notes).map_err(failed)?, true),
        })
    }
}

/// Content and notes of a state.
fn split(state: Option<&Json>) -> (Tree, Notes) {
    let mut tree = state.map_or_else(|| Tree::Object(Vec::new()), Tree::of);
    let mut notes = Notes::default();
    if let Tree::Object(entries) = &mut tree
        && let Some(at) = entries.iter().position(|(key, _)| key == NOTES)
    {
        notes = Notes::of(entries.remove(at).1);
    }
    (tree, notes)
}

/// State of a content and notes.
fn joined(content: Tree, notes: &Notes) -> Json {
    if notes.is_empty() {
        return content.json();
    }
    let mut entries = match content {
        Tree::Object(entries) => entries,
        Tree::Leaf(_) | Tree::Text(_) | Tree::List(_) if content.is_empty() => Vec::new(),
        previous @ (Tree::Leaf(_) | Tree::Text(_) | Tree::List(_)) => {
            vec![("_previous".to_owned(), previous)]
        }
    };
    entries.push((NOTES.to_owned(), notes.tree()));
    Tree::Object(entries).json()
}

impl Layer for Scratchpad {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, storage: &ScopedStorage, _cx: &LayerCx) -> Result<Update, MemoryError> {
        let nothing = || if self.schema.is_some() { Json::empty_object() } else { Json::string("") };
        let stored = storage.get(ScopedStorage::STATE).await?;
        let Some(state) = stored else { return Ok(Update::Set(nothing())) };
        let (content, notes) = split(Some(&state));
        let is_valid = self.accepts(&content.json()).is_ok();
        Ok(Update::Set(if is_valid { state } else { joined(Tree::Object(Vec::new()), &notes) }))
    }

    async fn recall(&self, _ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let Some(state) = &cx.state else { return Ok(Recalled::nothing()) };
        let (content, notes) = split(Some(state));
        let content = match content {
            Tree::Leaf(_) | Tree::Text(_) | Tree::List(_) | Tree::Object(_) if content.is_empty() => None,
            Tree::Text(text) => Some(fenced("working_memory", &text)),
            tree @ (Tree::Leaf(_) | Tree::List(_) | Tree::Object(_)) => {
                Some(fenced("working_memory", &tree.pretty()))
            }
        };
        let notes = (!notes.is_empty()).then(|| fenced("notes", &notes.lines()));
        let blocks: Vec<String> = content.into_iter().chain(notes).collect();
        Ok(if blocks.is_empty() { Recalled::nothing() } else { Recalled::text(blocks.join("\n")) })
    }

    async fn store(&self, ask: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        if self.read_only {
            return Ok(Update::Keep);
        }
        let Message::Assistant(answer) = &*ask.answer else { return Ok(Update::Keep) };
        let call = answer.tool_calls().find(|call| call.name == IMPLICIT_TOOL);
        match call {
            Some(call) if call.arguments.is_object() => {
                self.updated(cx.state.as_ref(), &call.arguments).map(|(_, state)| Update::Set(state))
            }
            Some(_) | None => Ok(Update::Keep),
        }
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        let shared = self.def.scope == Scope::Resource;
        Ok(cx.state.clone().filter(|_| shared).map(Spawned::state))
    }

    fn check_call(&self, function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
        match function {
            "list" => check::<List>(arguments),
            "read" => check::<Read>(arguments),
            "write" => check::<Write>(arguments),
            "edit" => check::<Edit>(arguments),
            _ if arguments.is_object() => Ok(()),
            _ => Err(ArgumentFault::new("", "an object is expected")),
        }
    }

    async fn call(&self, function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        if function == "update" {
            let (content, state) = self.updated(cx.state.as_ref(), &arguments)?;
            return Ok(Called::new(content).with_state(Update::Set(state)));
        }
        let (content, mut notes) = split(cx.state.as_ref());
        let (result, changed) = self.call_notes(function, &arguments, &mut notes)?;
        let update = if changed { Update::Set(joined(content, &notes)) } else { Update::Keep };
        Ok(Called::new(result).with_state(update))
    }
}
