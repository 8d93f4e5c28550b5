//! What a restored execution does again, and what it does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::driver::Ports;
use harness_core::message::{AssistantMessage, Cost, Message, Usage};
use harness_core::port::{ContextPipeline, ViewCx};
use harness_core::testing::ScriptedModel;
use harness_core::tool::tool_fn;
use harness_core::{Fault, Json, Origin, Outcome, RunId};
use harness_flow::checkpoint::{CheckpointError, Retention};
use harness_flow::{
    Execution, ExecutionSpec, Flow, FlowError, FlowRunner, Loop, OnLoopError, Parallel, Step, StepCx,
    TurnAgent, Until,
};
use harness_host::{Storage, StorageError};
use parking_lot::Mutex;

use crate::stage::{Stage, text};

/// Values by key.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<BTreeMap<String, Json>>>);

impl Storage for Shelf {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        Ok(self.0.lock().get(key).cloned())
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        self.0.lock().insert(key.to_owned(), value.clone());
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.0.lock().remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        Ok(self.0.lock().keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}

/// A flow that dies: code steps note that they ran; the process ends in the one at `crash`.
struct World {
    stage: Stage,
    shelf: Shelf,
    ran: Arc<Mutex<Vec<String>>>,
    /// The step in whose n-th run the process ends.
    crash: Arc<Mutex<Option<(String, usize)>>>,
}

impl World {
    fn new(crash: &str, occurrence: usize) -> Self {
        let crash = Arc::new(Mutex::new(Some((crash.to_owned(), occurrence))));
        Self { stage: Stage::new(), shelf: Shelf::default(), ran: Arc::default(), crash }
    }

    fn runner(&self) -> FlowRunner {
        self.stage.runner_with(|runner| runner.storage = Some(Arc::new(self.shelf.clone())))
    }

    /// Gives its input with its name after it, adds a message and changes the state.
    fn step(&self, id: &str) -> Step {
        let (name, ran, crash) = (id.to_owned(), Arc::clone(&self.ran), Arc::clone(&self.crash));
        Step::run(id, move |input: String, cx: StepCx| {
            let (name, ran, crash) = (name.clone(), Arc::clone(&ran), Arc::clone(&crash));
            async move {
                let occurrence = {
                    let mut ran = ran.lock();
                    ran.push(name.clone());
                    ran.iter().filter(|ran| **ran == name).count()
                };
                if *crash.lock() == Some((name.clone(), occurrence)) {
                    std::future::pending::<()>().await;
                }
                cx.append(Message::user(&*name));
                cx.set_state(Json::string(&name));
                Ok::<_, String>(format!("{input}>{name}"))
            }
        })
    }

    fn ran(&self) -> String {
        std::mem::take(&mut *self.ran.lock()).join(" ")
    }

    /// Runs until the process dies.
    fn dies(execution: &Execution, root: impl Into<Step>) {
        let flow = Flow::new(root).expect("a flow");
        let mut work = std::pin::pin!(execution.run(&flow, text("in")));
        for _ in 0..1_000 {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(work.as_mut().poll(&mut context).is_pending(), "it was to die");
        }
    }

    fn restored(&self) -> Execution {
        *self.crash.lock() = None;
        self.stage.drive(self.runner().restore("x")).expect("it can be read").expect("it is there")
    }

    #[track_caller]
    fn check(&self, root: &Step, first: &str, second: &str, output: &str) {
        Self::dies(&self.runner().start(ExecutionSpec::new("x")), root.clone());
        assert_eq!(self.ran(), first);
        let execution = self.restored();
        let flow = Flow::new(root.clone()).expect("a flow");
        let done = self.stage.drive(execution.run(&flow, text("in"))).expect("an output");
        assert_eq!((&*self.ran(), done.to_string()), (second, Json::string(output).to_string()));
    }
}

#[test]
fn finished_steps_of_a_sequence_are_taken() {
    let world = World::new("b", 1);
    let root = Loop::sequence("root", ["a", "b", "c"].map(|id| world.step(id)));
    world.check(&root.into(), "a b", "b c", "in>a>b>c");
}

#[test]
fn an_execution_that_dies_in_its_first_step_is_there() {
    let world = World::new("a", 1);
    world.check(&world.step("a"), "a", "a", "in>a");
}

#[test]
fn finished_rounds_of_a_loop_are_taken() {
    let world = World::new("q", 2);
    let root = Loop::new("root", ["p", "q"].map(|id| world.step(id)), Until::max_steps(3));
    world.check(&root.into(), "p q p q", "q p q", "in>p>q>p>q>p>q");
}

#[test]
fn finished_paths_and_children_are_taken() {
    let world = World::new("c", 1);
    let merge = |outputs: Vec<Json>| {
        let texts = outputs.iter().map(|output| output.to::<String>().unwrap_or_default());
        Ok(Json::string(&texts.collect::<Vec<_>>().join("+")))
    };
    let deep = Step::spawn("deep", Loop::sequence("inner", ["b", "c"].map(|id| world.step(id))).into());
    let root = Parallel::all_merged("f", [world.step("a"), deep], merge).concurrency(1);
    world.check(&root.into(), "a b c", "c", "in>a+in>b>c");
}

#[test]
fn messages_state_and_spending_come_back() {
    let world = World::new("b", 1);
    let usage = Usage::tokens(3, 2).with_cost(Cost(500_000_000));
    let model = ScriptedModel::new([AssistantMessage::text("said").with_usage(usage)]);
    let ask = || Step::model("ask", world.stage.agent(&model));
    let set = Step::run("set", |input: String, cx: StepCx| async move {
        cx.set_slot("memory", Json::string("kept"));
        cx.set_cwd("/work");
        Ok::<_, String>(input)
    });
    let root = || Loop::sequence("root", [set.clone(), world.step("a"), ask(), world.step("b")]);
    let mut spec = ExecutionSpec::new("x");
    (spec.thread, spec.resource) = (Some("t".into()), Some("r".into()));
    spec.messages = vec![Arc::new(Message::user("before"))];
    World::dies(&world.runner().start(spec), root());

    let execution = world.restored();
    let cx = execution.cx();
    let texts = || cx.messages().iter().map(|message| message.joined_text()).collect::<Vec<_>>();
    assert_eq!(texts(), ["before", "a", "in>a", "said"]);
    assert_eq!((cx.state(), cx.slot("memory")), (Json::string("a"), Some(Json::string("kept"))));
    assert_eq!((&*cx.cwd(), cx.previous_cwd().as_deref()), ("/work", Some("/")));
    assert_eq!(
        (cx.thread().map(harness_core::ThreadId::as_str), cx.resource().map(|id| &**id)),
        (Some("t"), Some("r"))
    );
    assert_eq!((cx.used().tokens, cx.used().cost), (5, Cost(500_000_000)));
    cx.init_slot("memory", Json::null());
    let flow = Flow::new(root()).expect("a flow");
    world.stage.drive(execution.run(&flow, text("in"))).expect("an output");
    assert_eq!(texts(), ["before", "a", "in>a", "said", "b"]);
    assert_eq!((model.unused(), cx.used().tokens, cx.slot("memory")), (0, 5, Some(Json::string("kept"))));
}

#[test]
fn the_working_folder_comes_back_as_it_was_and_belongs_to_the_restored_execution() {
    let cd = |folder: &'static str| {
        Step::run("cd", move |input: String, cx: StepCx| {
            cx.set_cwd(folder);
            async { Ok::<_, String>(input) }
        })
    };
    let folders = |cx: &StepCx| (cx.cwd().to_string(), cx.previous_cwd().map(|folder| folder.to_string()));

    let world = World::new("b", 1);
    let runner = world.runner();
    let execution = runner.start(ExecutionSpec::new("x"));
    runner.root_cwd.set("/host");
    World::dies(&execution, Loop::sequence("root", [world.step("a"), world.step("b")]));
    let restored = world.restored();
    assert_eq!(folders(restored.cx()), ("/host".into(), Some("/".into())));
    runner.root_cwd.set("/elsewhere");
    restored.cx().set_cwd("/mine");
    assert_eq!((&*restored.cx().cwd(), &*runner.root_cwd.get()), ("/mine", "/elsewhere"));

    let world = World::new("a", 1);
    let root = || Parallel::race("race", [Loop::sequence("path", [cd("/path"), world.step("a")]).into()]);
    World::dies(&world.runner().start(ExecutionSpec::new("x")), root());
    let restored = world.restored();
    let flow = Flow::new(root()).expect("a flow");
    world.stage.drive(restored.run(&flow, text("in"))).expect("an output");
    assert_eq!(folders(restored.cx()), ("/path".into(), Some("/".into())));
}

#[test]
fn a_childs_messages_come_back_with_its_steps() {
    let world = World::new("c", 1);
    let seen = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&seen);
    let look = Step::run("look", move |input: String, cx: StepCx| {
        *noted.lock() = cx.messages().len();
        async move { Ok::<_, String>(input) }
    });
    let inner = Loop::sequence("inner", [world.step("a"), world.step("c"), look]);
    world.check(&Step::spawn("child", inner.into()), "a c", "c", "in>a>c");
    assert_eq!(*seen.lock(), 2);
}

#[test]
fn a_round_that_is_tried_again_keeps_its_place() {
    let world = World::new("p", 3);
    let broken = Arc::new(Mutex::new(true));
    let once = Step::run("once", move |input: String, _| {
        let fails = std::mem::take(&mut *broken.lock());
        async move { if fails { Err("not yet") } else { Ok(input) } }
    });
    let root = Loop::new("root", [world.step("p"), once], Until::max_steps(2)).on_error(OnLoopError::Retry);
    world.check(&root.into(), "p p p", "p", "in>p>p");
}

#[test]
fn another_kind_of_step_at_a_place_discards_what_is_recorded_there() {
    let world = World::new("z", 1);
    let inner = Loop::sequence("x", [world.step("y")]);
    let before = Loop::sequence("root", [world.step("a"), inner.into(), world.step("z")]);
    World::dies(&world.runner().start(ExecutionSpec::new("x")), before);
    assert_eq!(world.ran(), "a y z");
    let execution = world.restored();
    let after = Loop::sequence("root", [world.step("a"), world.step("x"), world.step("z")]);
    let flow = Flow::new(after).expect("a flow");
    world.stage.drive(execution.run(&flow, text("in"))).expect("an output");
    let texts: Vec<_> = execution.cx().messages().iter().map(|message| message.joined_text()).collect();
    assert_eq!((&*world.ran(), texts.join(" ")), ("x z", "a x z".to_owned()));
}

#[test]
fn law_4_wherever_it_dies_it_ends_as_if_it_had_not() {
    let root = |world: &World| {
        let child = Step::spawn("child", Loop::sequence("inner", ["c", "d"].map(|id| world.step(id))).into());
        let first = |outputs: Vec<Json>| outputs.into_iter().next().ok_or_else(|| "none".to_owned());
        let fan = Parallel::all_merged("fan", [world.step("b"), child], first);
        Loop::new("root", [world.step("a"), fan.into(), world.step("e")], Until::max_steps(2))
    };
    for (step, occurrence) in ["a", "b", "c", "d", "e"].into_iter().flat_map(|id| [(id, 1), (id, 2)]) {
        let world = World::new(step, occurrence);
        World::dies(&world.runner().start(ExecutionSpec::new("x")), root(&world));
        let mut ran = world.ran();
        let execution = world.restored();
        let flow = Flow::new(root(&world)).expect("a flow");
        let done = world.stage.drive(execution.run(&flow, text("in")));
        ran = format!("{ran} {}", world.ran());
        let texts: Vec<_> = execution.cx().messages().iter().map(|message| message.joined_text()).collect();
        let times = |id: &str| ran.split(' ').filter(|ran| *ran == id).count();
        let again = ["a", "b", "c", "d", "e"].map(times).iter().sum::<usize>();
        let ended = (done, texts.join(" "), execution.cx().state(), times(step), again);
        let expected = (Ok(text("in>a>b>e>a>b>e")), "a e a e".to_owned(), text("e"), 3, 11);
        assert_eq!(ended, expected, "it died in `{step}`, run {occurrence}: {ran}");
    }
}

#[test]
fn what_is_not_recorded_runs_again_and_is_in_the_log_once() {
    for bounds in [Retention::new(Some(4), None), Retention::new(None, Some(1))] {
        let world = World::new("c", 1);
        let mut runner = world.runner();
        runner.retention = bounds.expect("bounds");
        let root = || Loop::sequence("root", ["a", "b", "c"].map(|id| world.step(id)));
        World::dies(&runner.start(ExecutionSpec::new("x")), root());
        let first = world.ran();
        let execution = world.restored();
        world.stage.drive(execution.run(&Flow::new(root()).expect("a flow"), text("in"))).expect("an output");
        let texts: Vec<_> = execution.cx().messages().iter().map(|message| message.joined_text()).collect();
        assert_eq!((&*first, texts.len()), ("a b c", 3), "{texts:?}");
        assert!(world.ran().starts_with("a "));
    }
    let fault = Retention::new(Some(0), None).expect_err("nothing would be kept");
    assert_eq!(fault.kind(), "STEP_LEDGER_RETENTION_INVALID");
}

#[test]
fn law_5_an_unsafe_call_that_had_begun_is_not_made_twice() {
    let world = World::new("none", 1);
    let calls = Arc::new(Mutex::new(0));
    let tool = |hangs: bool, pure: bool| {
        let calls = Arc::clone(&calls);
        let tool = tool_fn("pay", "Pays", move |_: serde_json::Value, _| {
            *calls.lock() += 1;
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                "paid"
            }
        });
        Step::tool("t", if pure { Arc::new(tool.pure()) } else { Arc::new(tool) }, Json::empty_object())
    };
    for (pure, expected) in [(false, Err("outcome_unknown")), (true, Ok(Json::string("paid")))] {
        World::dies(&world.runner().start(ExecutionSpec::new("x")), tool(true, pure));
        let execution = world.restored();
        let flow = Flow::new(tool(false, pure)).expect("a flow");
        let done = world.stage.drive(execution.run(&flow, Json::empty_object()));
        assert_eq!(done.as_ref().map_err(FlowError::kind).cloned(), expected);
    }
    assert_eq!(*calls.lock(), 3);
}

#[test]
fn another_version_is_refused_and_a_damaged_record_runs_again() {
    let world = World::new("b", 1);
    let root = || Loop::sequence("root", ["a", "b"].map(|id| world.step(id)));
    World::dies(&world.runner().start(ExecutionSpec::new("x")), root());
    world.ran();
    let change = |key: &str, text: &str| {
        let value = Json::parse(text).expect("JSON");
        world.shelf.0.lock().insert(key.to_owned(), value)
    };
    change("flow:x:step:00000001", "{}");
    let execution = world.restored();
    world.stage.drive(execution.run(&Flow::new(root()).expect("a flow"), text("in"))).expect("an output");
    assert_eq!(world.ran(), "a b");
    change("flow:x:start", r#"{"schemaVersion":2}"#);
    let fault = world.stage.drive(world.runner().restore("x")).expect_err("another version");
    assert!(matches!(fault, CheckpointError::Version { found: 2, known: 1, .. }), "{fault}");
    world.stage.drive(world.runner().clear(&RunId::from("x"))).expect("it can be removed");
    assert!(world.shelf.0.lock().is_empty());
    assert!(world.stage.drive(world.runner().restore("x")).expect("it can be read").is_none());
}

#[test]
fn storage_grows_with_the_work_and_each_message_is_stored_once() {
    let world = World::new("none", 1);
    let root = Loop::new("root", [world.step("say-this-only-once")], Until::max_steps(40));
    let execution = world.runner().start(ExecutionSpec::new("x"));
    world.stage.drive(execution.run(&Flow::new(root).expect("a flow"), text(""))).expect("an output");
    let shelf = world.shelf.0.lock();
    let stored = shelf.values().map(|value| value.text().matches("\"text\":\"say-this-only-once\"").count());
    assert_eq!((stored.sum::<usize>(), shelf.len()), (40, 42));
}

/// Layers whose state lives as long as an execution: they count the turns that they saw.
#[derive(Clone, Default)]
struct CountsTurns {
    state: Arc<Mutex<Option<u64>>>,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl ContextPipeline for CountsTurns {
    async fn begin(&self, _: &ViewCx) -> Result<(), Fault> {
        let count = self.state.lock().get_or_insert_default().checked_add(1);
        *self.state.lock() = count;
        self.seen.lock().extend(count);
        Ok(())
    }

    async fn complete(&self, _: Outcome, _: &ViewCx) -> Result<(), Fault> {
        *self.state.lock() = None;
        Ok(())
    }

    fn save_states(&self, _: &Origin) -> Option<Json> {
        self.state.lock().and_then(|count| Json::of(&count).ok())
    }

    fn restore_states(&self, _: &Origin, states: &Json) {
        *self.state.lock() = states.to().ok();
    }
}

#[test]
fn fault_42_layer_state_is_restored_with_the_execution() {
    let world = World::new("between", 1);
    let model = ScriptedModel::new([AssistantMessage::text("one"), AssistantMessage::text("two")]);
    let (clock, layers) = (Arc::new(world.stage.clock.clone()), CountsTurns::default());
    let seen = Arc::clone(&layers.seen);
    let agent = Arc::new(TurnAgent::new(move || {
        let mut ports = Ports::new(Arc::new(model.clone()), clock.clone());
        ports.layers = Some(Arc::new(layers.clone()));
        ports
    }));
    let steps = [Step::model("first", agent.clone()), world.step("between"), Step::model("second", agent)];
    let root: Step = Loop::sequence("root", steps).into();
    World::dies(&world.runner().start(ExecutionSpec::new("x")), root.clone());
    let execution = world.restored();
    let flow = Flow::new(root).expect("a flow");
    let output = world.stage.drive(execution.run(&flow, text("in"))).expect("an output");
    assert_eq!(output.text(), r#""two""#);
    assert_eq!(*seen.lock(), [1, 2], "the second step goes on with the state of the first");
}
