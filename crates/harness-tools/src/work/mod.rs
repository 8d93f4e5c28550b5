//! Work items: what a run has set out to do, kept with the model's help.

mod arguments;
mod completion;
mod report;

use std::sync::Arc;

use harness_control::work::{ItemId, ItemStatus, NewItem, WorkFault, WorkLedger, WorkLimits};
use harness_core::port::{Clock, Stateful};
use harness_core::tool::{DynTool, RetryClass, ToolCx, ToolOutcome, tool_fn};
use harness_core::{Json, Origin};

use self::arguments::{Add, AddArguments, Flag, Get, List, Store, Update, UpdateArguments};
pub use self::completion::work_complete;
use self::report::WorkReport;
use crate::state::{Keep, Kept, MOST_KEPT};
use crate::tool_set::ToolSet;

const ADD: (&str, &str) = (
    "work_item_add",
    "Adds work items: what is to be done. Give `title`, or several in `items`. The role says what the artifact \
     is for: `deliverable` goes to the user, `working` is for you, `control` judges other items.",
);
const UPDATE: (&str, &str) = (
    "work_item_update",
    "Says how far work items are: `item_id` and `status`, or several in `items`. Notes replace those before.",
);
const LIST: (&str, &str) = ("work_item_list", "Lists the work items.");
const GET: (&str, &str) = ("work_item_get", "Gives one work item with its whole artifact.");
const STORE: (&str, &str) = (
    "work_item_set_artifact",
    "Stores what came of a work item: the result itself, without words around it. Without `role` the item \
     keeps its own. A control artifact is JSON.",
);
const FLAG: (&str, &str) = (
    "work_item_flag_revision",
    "Asks for a revision of a work item: adds an item that takes its place when it is done.",
);

/// The tools `work_item_add`, `_update`, `_list`, `_get`, `_set_artifact` and `_flag_revision` over a
/// [`WorkLedger`]: the work items of a run.
///
/// There is one ledger per run ([`Keep::Run`]) or per conversation, within [`WorkLimits`]; those of the 50
/// latest runs are kept. What a tool did is also in the structured part of its result, under `ledger`: the
/// items that changed, whole with their artifacts. A controlled run rebuilds the ledger from that; the one here
/// is the tools' working copy. [`WorkTools::restore`] restores that of a resumed run
/// ([`WorkLedger::of`]). Tools that change the ledger run alone in their
/// batch, so that the results report the changes in their order.
///
/// An unknown item, status or filter is answered in words that name what there is; nothing changes then.
#[derive(Clone, derive_more::Debug)]
pub struct WorkTools {
    #[debug(skip)]
    ledgers: Arc<Kept<WorkLedger>>,
    #[debug(skip)]
    clock: Arc<dyn Clock>,
    limits: WorkLimits,
}

impl WorkTools {
    /// Ledgers with this lifetime; items have the clock's times.
    pub fn new(keep: Keep, clock: Arc<dyn Clock>) -> Self {
        Self { ledgers: Arc::new(Kept::new(keep, MOST_KEPT)), clock, limits: WorkLimits::default() }
    }

    /// Uses the same ledgers with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the bounds of a ledger.
    #[must_use]
    pub fn with_limits(mut self, limits: WorkLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The ledger of a run or conversation; empty when it has none.
    pub fn ledger(&self, origin: &Origin) -> WorkLedger {
        self.ledgers.with(origin, |ledger| ledger.clone())
    }

    /// Puts a stored ledger in the place of the one of a run or conversation.
    pub fn restore(&self, origin: &Origin, ledger: WorkLedger) {
        self.ledgers.with(origin, |kept| *kept = ledger);
    }

    /// Lets go of the ledger of a run or conversation.
    pub fn forget(&self, origin: &Origin) {
        self.ledgers.forget(origin);
    }

    /// All tools.
    pub fn into_set(self) -> ToolSet {
        let (of, changes, looks) = (Arc::new(self), RetryClass::Unsafe, RetryClass::Pure);
        ToolSet::new(Self::list_tools(&of).into_iter().chain([
            tool(&of, looks, GET, |this, cx, arguments: Get| this.get(cx, &arguments)),
            tool(&of, changes, STORE, |this, cx, arguments: Store| this.store(cx, &arguments)),
            tool(&of, changes, FLAG, |this, cx, arguments: Flag| this.flag(cx, &arguments)),
        ]))
    }

    /// A simple to-do list: `work_item_add`, `_update` and `_list` alone.
    pub fn into_list(self) -> ToolSet {
        ToolSet::new(Self::list_tools(&Arc::new(self)))
    }

    fn list_tools(of: &Arc<Self>) -> [Arc<dyn DynTool>; 3] {
        let (changes, looks) = (RetryClass::Unsafe, RetryClass::Pure);
        [
            tool(of, changes, ADD, |this, cx, arguments: AddArguments| this.add(cx, arguments)),
            tool(of, changes, UPDATE, |this, cx, arguments: UpdateArguments| this.update(cx, arguments)),
            tool(of, looks, LIST, |this, cx, arguments: List| this.list(cx, &arguments)),
        ]
    }

    fn add(&self, cx: &ToolCx, arguments: AddArguments) -> ToolOutcome {
        let items: Vec<Add> = arguments.items();
        if items.is_empty() {
            return refused("give `title`, or `items` with at least one item");
        }
        self.changed(cx, |ledger, told| {
            for item in items {
                let role = word(item.role.as_deref()).unwrap_or_default();
                let priority = word(item.priority.as_deref()).unwrap_or_default();
                let item = NewItem { title: item.title, role, priority, notes: item.notes };
                let id = ledger.add(item, self.clock.now(), &self.limits)?;
                told.added(ledger.get(&id)?);
            }
            Ok(())
        })
    }

    fn update(&self, cx: &ToolCx, arguments: UpdateArguments) -> ToolOutcome {
        let items: Vec<Update> = arguments.items();
        if items.is_empty() {
            return refused("give `item_id` and `status`, or `items` with at least one item");
        }
        for item in &items {
            if item.status.parse::<ItemStatus>().is_err() {
                return refused(&format!(
                    "`{}` is not a status; use one of {}",
                    item.status,
                    report::statuses()
                ));
            }
        }
        self.changed(cx, |ledger, told| {
            for item in items {
                let id = ItemId::from(item.item_id.as_str());
                let status = word(Some(&item.status)).unwrap_or_default();
                ledger.update(&id, status, &item.notes, self.clock.now(), &self.limits)?;
                told.updated(ledger.get(&id)?);
            }
            told.progress(ledger);
            Ok(())
        })
    }

    fn list(&self, cx: &ToolCx, arguments: &List) -> ToolOutcome {
        let only = arguments.filter_status.parse::<ItemStatus>().ok();
        self.ledgers.with(&cx.origin, |ledger| report::list(ledger, only))
    }

    fn get(&self, cx: &ToolCx, arguments: &Get) -> ToolOutcome {
        self.ledgers.with(&cx.origin, |ledger| match ledger.get(&ItemId::from(arguments.item_id.as_str())) {
            Ok(item) => report::whole(item),
            Err(fault) => refused(&report::fault(&fault)),
        })
    }

    fn store(&self, cx: &ToolCx, arguments: &Store) -> ToolOutcome {
        self.changed(cx, |ledger, told| {
            let id = ItemId::from(arguments.item_id.as_str());
            let role = word(arguments.role.as_deref());
            let stored = ledger.store(&id, &arguments.artifact, role, self.clock.now(), &self.limits)?;
            told.stored(ledger.get(&id)?, stored.removed_lines);
            Ok(())
        })
    }

    fn flag(&self, cx: &ToolCx, arguments: &Flag) -> ToolOutcome {
        self.changed(cx, |ledger, told| {
            let id = ItemId::from(arguments.item_id.as_str());
            let revision = ledger.flag_revision(&id, &arguments.reason, self.clock.now(), &self.limits)?;
            told.flagged(ledger.get(&id)?, ledger.get(&revision)?);
            Ok(())
        })
    }

    /// Applies a change and reports it; an error leaves the ledger unchanged.
    fn changed(
        &self,
        cx: &ToolCx,
        change: impl FnOnce(&mut WorkLedger, &mut WorkReport) -> Result<(), WorkFault>,
    ) -> ToolOutcome {
        self.ledgers.with(&cx.origin, |ledger| {
            let (before, mut told) = (ledger.clone(), WorkReport::default());
            match change(ledger, &mut told) {
                Ok(()) => told.outcome(&ledger.delta_since(&before)),
                Err(fault) => {
                    *ledger = before;
                    refused(&report::fault(&fault))
                }
            }
        })
    }
}

/// The ledger of a run or conversation, as its tools last left it.
impl Stateful for WorkTools {
    fn name(&self) -> &'static str {
        "work_items"
    }

    fn has_tool(&self, name: &str) -> bool {
        [ADD, UPDATE, LIST, GET, STORE, FLAG].iter().any(|(tool, _)| *tool == name)
    }

    fn save_state(&self, origin: &Origin) -> Option<Json> {
        self.ledgers.peek(origin, |ledger| (!ledger.is_empty()).then(|| Json::of(ledger).ok()))??
    }

    fn restore_state(&self, origin: &Origin, saved: Option<&Json>) {
        match saved.and_then(|saved| saved.to().ok()) {
            Some(ledger) => self.restore(origin, ledger),
            None => self.forget(origin),
        }
    }

    fn is_of_thread(&self) -> bool {
        self.ledgers.keep() == Keep::Thread
    }
}

/// A word of a closed list; one that is not in it is none.
fn word<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
    text.and_then(|text| text.parse().ok())
}

fn refused(why: &str) -> ToolOutcome {
    ToolOutcome::error("work_item", why)
}

/// A tool over the shared ledgers.
fn tool<A>(
    shared: &Arc<WorkTools>,
    class: RetryClass,
    (name, description): (&str, &str),
    run: fn(&WorkTools, &ToolCx, A) -> ToolOutcome,
) -> Arc<dyn DynTool>
where
    A: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
{
    let shared = Arc::clone(shared);
    let tool = tool_fn(name, description, move |arguments: A, cx| {
        let outcome = run(&shared, &cx, arguments);
        async move { outcome }
    });
    if class == RetryClass::Pure { Arc::new(tool.pure()) } else { Arc::new(tool.internal().sequential()) }
}
