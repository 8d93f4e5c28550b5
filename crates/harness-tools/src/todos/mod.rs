//! What is to be done, in batches and with small numbers.

mod list;

use std::sync::Arc;

use harness_core::Json;
use harness_core::machine::Origin;
use harness_core::message::Message;
use harness_core::port::{DynTool, ToolCx, ToolOutcome, tool_fn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::list::{Todo, TodoList};
use crate::state::{Keep, Kept, MOST_KEPT};
use crate::tool_set::ToolSet;

const ADD: (&str, &str) = (
    "todos_add",
    "Adds things to do, several at once in `todos`. Each gets a number. For work of one or two steps no list \
     is needed.",
);
const COMPLETE: (&str, &str) =
    ("todos_complete", "Marks things as done: `id` and `reason`, or several in `todos`.");
const REMOVE: (&str, &str) =
    ("todos_remove", "Removes things that need not be done any more: `id`, or several in `ids`.");
const REMAINING: (&str, &str) = ("todos_get_remaining", "Lists what is still to be done.");
const ALL: (&str, &str) = ("todos_get_all", "Lists everything, done or not.");

/// The tools `todos_add`, `todos_complete`, `todos_remove`, `todos_get_remaining` and `todos_get_all`: a
/// list that the model keeps for itself, changed in batches.
///
/// There is one [`TodoList`] per run ([`Keep::Run`]) or per conversation; those of the 50 latest are kept. The
/// changes of one call are made together or not at all, and an unknown number is answered with those that
/// there are. The whole list stands in the structured part of each result of a change, so that
/// [`restore_from`](Self::restore_from) finds it again in a transcript.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::machine::Origin;
/// use harness_core::message::ToolCall;
/// use harness_core::port::{ToolCx, ToolRegistry};
/// use harness_tools::{Keep, TodoTools};
///
/// let todos = TodoTools::new(Keep::Thread);
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let arguments = Json::parse(r#"{"todos":[{"title":"Read the log"},{"title":"Write the report"}]}"#)?;
/// let call = ToolCall::new("c", "todos_add", arguments);
/// todos.clone().into_set().call(ToolCx::for_call(Arc::new(call))).await?;
/// assert_eq!(todos.list(&Origin::default()).remaining().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TodoTools {
    lists: Arc<Kept<TodoList>>,
}

impl TodoTools {
    /// Lists that are kept so long.
    pub fn new(keep: Keep) -> Self {
        Self { lists: Arc::new(Kept::new(keep, MOST_KEPT)) }
    }

    /// The list of a run or conversation; empty when it has none.
    pub fn list(&self, origin: &Origin) -> TodoList {
        self.lists.with(origin, |list| list.clone())
    }

    /// Puts a list in the place of the one of a run or conversation.
    pub fn restore(&self, origin: &Origin, list: TodoList) {
        self.lists.with(origin, |kept| *kept = list);
    }

    /// Puts the list that a transcript tells last in the place of the one of a run or conversation. Whether it
    /// tells one; otherwise nothing changes.
    pub fn restore_from<'m>(&self, origin: &Origin, messages: impl IntoIterator<Item = &'m Message>) -> bool {
        let told = TodoList::told_in(messages);
        let found = told.is_some();
        if let Some(list) = told {
            self.restore(origin, list);
        }
        found
    }

    /// Lets go of the list of a run or conversation.
    pub fn forget(&self, origin: &Origin) {
        self.lists.forget(origin);
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        let of = &self;
        ToolSet::new([
            changes(of, ADD, |list, Add { todos }: Add| {
                some(&todos, "todos")?;
                todos.into_iter().map(|new| list.add(new.title, new.description)).collect()
            }),
            changes(of, COMPLETE, |list, asked: Complete| {
                let asked = asked.all();
                some(&asked, "todos")?;
                asked.into_iter().map(|done| list.complete(done.id, done.reason).map(|()| done.id)).collect()
            }),
            changes(of, REMOVE, |list, Remove { id, ids }: Remove| {
                let ids: Vec<u64> = id.into_iter().chain(ids).collect();
                some(&ids, "ids")?;
                list.remove(&ids).map(|()| ids)
            }),
            looks(of, REMAINING, |todo| !todo.is_complete),
            looks(of, ALL, |_| true),
        ])
    }

    fn change(
        &self,
        cx: &ToolCx,
        change: impl FnOnce(&mut TodoList) -> Result<Vec<u64>, String>,
    ) -> ToolOutcome {
        self.lists.with(&cx.origin, |list| {
            let before = list.clone();
            match change(list) {
                Ok(ids) => told(list, ids),
                Err(why) => {
                    *list = before;
                    ToolOutcome::error("todos", why)
                }
            }
        })
    }
}

/// What a model is told of a change: the numbers and how much is left. Listeners get the whole list.
fn told(list: &TodoList, ids: Vec<u64>) -> ToolOutcome {
    #[derive(Serialize)]
    struct Short {
        ids: Vec<u64>,
        remaining: usize,
    }
    #[derive(Serialize)]
    struct Whole<'l> {
        list: &'l TodoList,
    }
    let short = Short { ids, remaining: list.remaining().count() };
    let mut outcome = ToolOutcome::structured(Json::of(&short).unwrap_or_default());
    outcome.structured = Json::of(&Whole { list }).ok();
    outcome
}

fn some<T>(asked: &[T], key: &str) -> Result<(), String> {
    if asked.is_empty() { Err(format!("give `{key}` with at least one item")) } else { Ok(()) }
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// What is to be done.
    todos: Vec<New>,
}

#[derive(Deserialize, JsonSchema)]
struct New {
    /// What is to be done, in a few words.
    title: String,
    /// More about it.
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Complete {
    /// The number of the item.
    #[serde(default)]
    id: Option<u64>,
    /// Why it is done: what was made, and where it is.
    #[serde(default)]
    reason: Option<String>,
    /// Several items at once.
    #[serde(default)]
    todos: Vec<Done>,
}

#[derive(Deserialize, JsonSchema)]
struct Done {
    /// The number of the item.
    id: u64,
    /// Why it is done: what was made, and where it is.
    #[serde(default)]
    reason: Option<String>,
}

impl Complete {
    fn all(self) -> Vec<Done> {
        let reason = self.reason;
        self.id.map(|id| Done { id, reason }).into_iter().chain(self.todos).collect()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Remove {
    /// The number of the item.
    #[serde(default)]
    id: Option<u64>,
    /// The numbers of several items.
    #[serde(default)]
    ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn changes<A>(
    of: &TodoTools,
    (name, description): (&str, &str),
    change: fn(&mut TodoList, A) -> Result<Vec<u64>, String>,
) -> Arc<dyn DynTool>
where
    A: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let of = of.clone();
    let tool = tool_fn(name, description, move |arguments: A, cx: ToolCx| {
        let outcome = of.change(&cx, |list| change(list, arguments));
        async move { outcome }
    });
    Arc::new(tool.internal())
}

fn looks(of: &TodoTools, (name, description): (&str, &str), shown: fn(&Todo) -> bool) -> Arc<dyn DynTool> {
    #[derive(Serialize)]
    struct Listed<'l> {
        todos: Vec<&'l Todo>,
    }
    let of = of.clone();
    let tool = tool_fn(name, description, move |_: Nothing, cx: ToolCx| {
        let listed = of.lists.with(&cx.origin, |list| {
            let todos = list.items.iter().filter(|todo| shown(todo)).collect();
            Json::of(&Listed { todos }).unwrap_or_default()
        });
        async move { ToolOutcome::structured(listed) }
    });
    Arc::new(tool.pure())
}
