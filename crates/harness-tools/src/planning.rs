//! A list of what is to be done, kept by the model itself.

use std::sync::Arc;

use harness_core::tool::{ArgumentFault, DynTool, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::{Json, Origin};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{Arguments, Refused, checked};
use crate::exact::answered;
use crate::state::{Keep, Kept, MOST_KEPT};
use crate::tool_set::ToolSet;

/// How long one item may be, in bytes.
const MOST_CONTENT: usize = 4_096;

const STATES: [&str; 3] = ["pending", "in_progress", "completed"];

/// The tools `write_todos`, `list_todos` and `complete_todo`: a todo list.
///
/// There is one list per run ([`Keep::Run`]) or per conversation, of at most 32 items with 4 KiB each; the
/// lists of the 50 latest runs are kept. At most one item is in progress; completing the last one in
/// progress moves the next item that comes later in the list to `in_progress`. Wrong arguments are
/// `invalid_input`; everything else is a success with `{"ok": false, "error": …}`.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::tool::{ToolCx, ToolRegistry};
/// use harness_tools::PlanningTools;
///
/// let tools = PlanningTools::default().into_set();
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let todos = Json::parse(r#"{"todos":[{"content":"scan"}]}"#)?;
/// let call = ToolCall::new("c", "write_todos", todos);
/// let outcome = tools.call(ToolCx::for_call(Arc::new(call))).await?;
/// let expected = r#"{"ok":true,"todos":[{"id":"todo-1","content":"scan","status":"pending","seq":1}]}"#;
/// assert_eq!(outcome.structured.map(|json| json.to_string()).as_deref(), Some(expected));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanningTools {
    plans: Arc<Kept<Plan>>,
    most: usize,
}

impl Default for PlanningTools {
    fn default() -> Self {
        Self::new(32, Keep::Run)
    }
}

impl PlanningTools {
    /// Lists of at most so many items.
    pub fn new(max_todos: usize, keep: Keep) -> Self {
        Self { plans: Arc::new(Kept::new(keep, MOST_KEPT)), most: max_todos }
    }

    /// Lets go of the list of a run or conversation.
    pub fn forget(&self, origin: &Origin) {
        self.plans.forget(origin);
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        ToolSet::new([Kind::Write, Kind::List, Kind::Complete].map(|kind| {
            let def = kind.def(self.most);
            Arc::new(PlanningTool { kind, def, shared: self.clone() }) as Arc<dyn DynTool>
        }))
    }
}

#[derive(Debug, Default)]
struct Plan {
    todos: Vec<Todo>,
    seq: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Todo {
    id: String,
    content: String,
    status: &'static str,
    seq: u64,
}

#[derive(Serialize)]
struct Done<'p> {
    ok: bool,
    todos: &'p [Todo],
}

#[derive(Clone, Copy)]
enum Kind {
    Write,
    List,
    Complete,
}

impl Kind {
    fn def(self, most: usize) -> ToolDef {
        let text = json!({ "type": "string", "minLength": 1 });
        let (name, description, schema) = match self {
            Self::Write => {
                let item = json!({
                    "type": "object",
                    "required": ["content"],
                    "properties": { "id": text, "content": text, "status": { "type": "string", "enum": STATES } },
                });
                let schema = json!({
                    "type": "object",
                    "required": ["todos"],
                    "properties": { "todos": { "type": "array", "maxItems": most, "items": item } },
                });
                (
                    "write_todos",
                    "Replaces the list of what is to be done. At most one item is in progress.",
                    schema,
                )
            }
            Self::List => (
                "list_todos",
                "Shows the list of what is to be done.",
                json!({ "type": "object", "properties": {} }),
            ),
            Self::Complete => {
                let schema = json!({ "type": "object", "required": ["id"], "properties": { "id": text } });
                (
                    "complete_todo",
                    "Marks an item as completed; the next one that waits is then in progress.",
                    schema,
                )
            }
        };
        let class = if matches!(self, Self::List) { RetryClass::Pure } else { RetryClass::Unsafe };
        let def = ToolDef::new(name, description).with_schema(schema.into());
        def.with_class(class).into_internal()
    }
}

/// What is asked for, checked.
enum Ask {
    Write(Vec<(Option<String>, String, &'static str)>),
    List,
    Complete(String),
}

struct PlanningTool {
    kind: Kind,
    def: ToolDef,
    shared: PlanningTools,
}

impl PlanningTool {
    fn ask(&self, arguments: &Json) -> Result<Ask, Refused> {
        let arguments = Arguments::of(arguments)?;
        match self.kind {
            Kind::List => Ok(Ask::List),
            Kind::Complete => Ok(Ask::Complete(checked::filled("id", arguments.get("id"))?.to_owned())),
            Kind::Write => {
                let todos = checked::list("todos", arguments.get("todos"), self.shared.most)?;
                let todo = |(at, value): (usize, &Value)| todo(&format!("todos[{at}]"), value);
                todos.iter().enumerate().map(todo).collect::<Result<_, _>>().map(Ask::Write)
            }
        }
    }
}

fn todo(path: &str, value: &Value) -> Result<(Option<String>, String, &'static str), Refused> {
    let todo = checked::object(path, value)?;
    let id = match todo.get("id") {
        None => None,
        id => Some(checked::filled(&format!("{path}.id"), id)?.to_owned()),
    };
    let at = format!("{path}.content");
    let content = checked::filled(&at, todo.get("content"))?;
    if content.len() + id.as_ref().map_or(0, String::len) > MOST_CONTENT {
        return Err(Refused::new(at, format!("String must contain at most {MOST_CONTENT} character(s)")));
    }
    let status = checked::word(&format!("{path}.status"), todo.get("status"), &STATES)?;
    let status = STATES.into_iter().find(|known| Some(*known) == status).unwrap_or("pending");
    Ok((id, content.to_owned(), status))
}

impl Plan {
    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn write(&mut self, todos: Vec<(Option<String>, String, &'static str)>) -> Result<(), String> {
        if todos.iter().filter(|(_, _, status)| *status == "in_progress").count() > 1 {
            return Err("At most one todo can be in_progress at a time.".to_owned());
        }
        self.todos = Vec::new();
        for (id, content, status) in todos {
            let seq = self.next();
            self.todos.push(Todo { id: id.unwrap_or_else(|| format!("todo-{seq}")), content, status, seq });
        }
        Ok(())
    }

    fn complete(&mut self, id: &str) -> Result<(), String> {
        let Some(at) = self.todos.iter().position(|todo| todo.id == id) else {
            return Err(format!("Unknown todo id: {id}"));
        };
        self.set(at, "completed");
        if !self.todos.iter().any(|todo| todo.status == "in_progress") {
            let waits = |(_, todo): &(usize, &Todo)| todo.status == "pending";
            if let Some((next, _)) = self.todos.iter().enumerate().skip(at + 1).find(waits) {
                self.set(next, "in_progress");
            }
        }
        Ok(())
    }

    fn set(&mut self, at: usize, status: &'static str) {
        let seq = self.next();
        if let Some(todo) = self.todos.get_mut(at) {
            todo.status = status;
            todo.seq = seq;
        }
    }
}

impl Tool for PlanningTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.ask(arguments).map(|_| ()).map_err(Into::into)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let ask = match self.ask(&cx.call.arguments) {
            Ok(ask) => ask,
            Err(refused) => return refused.outcome(),
        };
        self.shared.plans.with(&cx.origin, |plan| {
            let done = match ask {
                Ask::List => Ok(()),
                Ask::Write(todos) => plan.write(todos),
                Ask::Complete(id) => plan.complete(&id),
            };
            match done {
                Ok(()) => answered(&Done { ok: true, todos: &plan.todos }),
                Err(error) => answered(&crate::exact::NotOk::new(error)),
            }
        })
    }
}
