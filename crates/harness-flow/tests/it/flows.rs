//! Steps: what each gives, how each fails, what is called around them.

use std::sync::Arc;

use harness_core::decide::{DecideCx, DynGate, Gate, GateDecision, GateVerdict, Guarded, gate};
use harness_core::limits::Amount;
use harness_core::message::{AssistantMessage, Cost, Usage};
use harness_core::port::ProposedCall;
use harness_core::testing::ScriptedModel;
use harness_core::tool::tool_fn;
use harness_core::{Fault, Json, Millis};
use harness_flow::channel::ChannelSpec;
use harness_flow::{
    Backoff, ExecutionSpec, Flow, FlowError, FlowEvent, Loop, MeaningRouter, Parallel, Retry, Step, StepCx,
    StepHooks, StepInfo, Until,
};
use parking_lot::Mutex;

use crate::stage::{Stage, text};

/// Gives its input with its name after it.
pub(crate) fn tag(id: &str) -> Step {
    let name = id.to_owned();
    Step::run(id, move |input: String, _| {
        let output = format!("{input}>{name}");
        async move { Ok::<_, String>(output) }
    })
}

/// Fails with its name.
fn fails(id: &str) -> Step {
    let name = id.to_owned();
    Step::run(id, move |_: Json, _| {
        let problem = format!("{name} is broken");
        async move { Err::<Json, _>(problem) }
    })
}

/// Waits, then gives its name.
fn slow(id: &str, ms: u64, stage: &Stage) -> Step {
    let (name, clock) = (id.to_owned(), stage.clock.clone());
    Step::run(id, move |_: Json, _| {
        let (name, clock) = (name.clone(), clock.clone());
        async move {
            use harness_core::port::Clock as _;
            clock.sleep_until(clock.now().after(Millis(ms))).await;
            Ok::<_, String>(name)
        }
    })
}

#[track_caller]
fn check(root: impl Into<Step>, expected: &str) {
    let stage = Stage::new();
    assert_eq!(stage.run(root, text("in")), expected);
}

#[test]
fn a_sequence_hands_outputs_on() {
    check(Loop::sequence("root", [tag("a"), tag("b")]), r#""in>a>b""#);
}

#[test]
fn code_fails_by_errors_panics_and_inputs_that_do_not_fit() {
    check(fails("a"), "step `a` failed: a is broken");
    check(
        Step::run("a", |_: u64, _| async { Ok::<_, String>(1) }),
        "step `a` failed: the input does not fit: invalid type: string \"in\", expected u64 at line 1 column 4",
    );
    check(
        Step::run("a", |_: Json, _| async {
            assert_eq!(1, 2, "sum");
            Ok::<_, String>(1)
        }),
        "step `a` failed: it panicked: assertion `left == right` failed: sum\n  left: 1\n right: 2",
    );
}

#[test]
fn a_branch_chooses_or_lets_pass() {
    let choose = |chosen: Option<Step>| {
        Step::branch("b", move |_, _| {
            let chosen = chosen.clone();
            async move { Ok::<_, String>(chosen) }
        })
    };
    check(choose(Some(tag("a"))), r#""in>a""#);
    check(choose(None), r#""in""#);
    check(Step::branch("b", |_, _| async { Err::<Option<Step>, _>("no idea") }), "step `b` failed: no idea");
}

#[test]
fn retries_wait_and_say_that_they_are_used_up() {
    let stage = Stage::new();
    let tried = Arc::new(Mutex::new(Vec::new()));
    let (times, clock) = (Arc::clone(&tried), stage.clock.clone());
    let step = Step::run("a", move |_: Json, _| {
        use harness_core::port::Clock as _;
        times.lock().push(clock.now().0);
        async { Err::<Json, _>("not yet") }
    });
    let retry = Retry::new(3).waiting(Backoff::Exponential, Millis(10));
    assert_eq!(stage.run(step.retry(retry), text("in")), "step `a` failed at every attempt: not yet");
    assert_eq!(*tried.lock(), [0, 10, 30]);
}

#[test]
fn a_timeout_ends_what_is_beneath_it() {
    let stage = Stage::new();
    let late = Loop::sequence("late", [slow("x", 50, &stage), tag("never")]);
    let step = Step::spawn("outer", late.into()).timeout(Millis(20));
    assert_eq!(stage.run(step, text("in")), "step `outer` failed: timeout of 20 ms exceeded");
    assert_eq!(stage.now(), 20);
}

#[test]
fn all_paths_give_their_outputs_in_the_order_of_paths() {
    let stage = Stage::new();
    let paths = [slow("a", 30, &stage), slow("b", 5, &stage)];
    assert_eq!(stage.run(Parallel::all("f", paths), text("in")), r#"["a","b"]"#);
    assert_eq!(stage.now(), 30);
}

#[test]
fn the_first_failure_ends_the_paths_beside_it() {
    let stage = Stage::new();
    let paths = [slow("a", 1, &stage), fails("b"), slow("c", 9, &stage), tag("d")];
    let told = stage.run(Parallel::all("f", paths).concurrency(3), text("in"));
    assert_eq!(told, "step `f`: 0 paths succeeded, 4 failed: step `b` failed: b is broken");
    assert_eq!(stage.now(), 0);
}

#[test]
fn settled_paths_tell_what_came_of_each() {
    let merge = |results: Vec<harness_flow::PathResult>| {
        let shown = results.iter().map(|path| match &path.outcome {
            Ok(output) => format!("{}={output}", path.step),
            Err(error) => format!("{}: {}", path.step, error.kind()),
        });
        Ok(Json::string(&shown.collect::<Vec<_>>().join(", ")))
    };
    check(Parallel::settle("f", [tag("a"), fails("b")], merge), r#""a=\"in>a\", b: step_failed""#);
    check(Parallel::settle("f", [], merge), r#""""#);
}

#[test]
fn a_race_is_won_by_the_first_success_and_its_state_is_taken() {
    let stage = Stage::new();
    let set = |id: &str, ms: u64| {
        let (name, clock) = (id.to_owned(), stage.clock.clone());
        Step::run(id, move |_: Json, cx: StepCx| {
            let (name, clock) = (name.clone(), clock.clone());
            async move {
                use harness_core::port::Clock as _;
                cx.set_state(Json::string(&name));
                clock.sleep_until(clock.now().after(Millis(ms))).await;
                Ok::<_, String>(name)
            }
        })
    };
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let flow = Flow::new(Parallel::race("f", [fails("a"), set("b", 9), set("c", 3)])).expect("a flow");
    assert_eq!(stage.drive(execution.run(&flow, text("in"))).expect("an output").text(), r#""c""#);
    assert_eq!((execution.cx().state(), stage.now()), (Json::string("c"), 3));
    let none = stage.run(Parallel::race("f", []), text("in"));
    assert_eq!(none, "step `f`: 0 paths succeeded, 0 failed: no path");
}

#[test]
fn spawns_are_deep_at_most_64() {
    let nested = |depth: usize| (0..depth).fold(tag("leaf"), |step, _| Step::spawn("s", step));
    check(nested(63), r#""in>leaf""#);
    let loops = (0..149).fold(tag("leaf"), |step, _| Loop::sequence("l", [step]).into());
    check(loops, r#""in>leaf""#);
    let route = |step: Step| {
        Step::branch("b", move |_, _| {
            let step = step.clone();
            async move { Ok::<_, String>(Some(step)) }
        })
    };
    let deep = (0..151).fold(tag("leaf"), |step, _| route(step));
    check(deep, "step `b` failed: steps are nested too deep; the limit is 150 levels");
    check(nested(64), "step `leaf` failed: spawns are nested 64 levels deep; the limit is 64");
}

#[test]
fn a_child_has_no_messages_and_a_copy_of_the_state() {
    let look = Step::run("look", |(): (), cx: StepCx| async move {
        let seen = (cx.messages().len(), cx.state(), cx.depth());
        cx.append(harness_core::message::Message::user("inside"));
        cx.set_state(Json::string("changed"));
        Ok::<_, String>(format!("{seen:?}"))
    });
    let set = Step::run("set", |(): (), cx: StepCx| async move {
        cx.append(harness_core::message::Message::user("outside"));
        cx.set_state(Json::string("first"));
        Ok::<_, String>(())
    });
    let stage = Stage::new();
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let flow = Flow::new(Loop::sequence("root", [set, Step::spawn("child", look)])).expect("a flow");
    let seen = stage.drive(execution.run(&flow, Json::null())).expect("an output");
    assert_eq!(seen.text(), r#""(0, \"first\", 1)""#);
    assert_eq!((execution.cx().messages().len(), execution.cx().state()), (1, Json::string("first")));
}

#[test]
fn a_model_step_runs_a_turn_and_keeps_what_was_said() {
    let stage = Stage::new();
    let usage = Usage::tokens(3, 2).with_cost(Cost(500_000_000));
    let model = ScriptedModel::new([
        AssistantMessage::text("```json\n{\"n\": 7}\n```").with_usage(usage.clone()),
        AssistantMessage::text("seven").with_usage(usage),
    ]);
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let ask = Step::model_json::<serde_json::Value>("ask", stage.agent(&model));
    let flow =
        Flow::new(Loop::sequence("root", [ask, Step::model("say", stage.agent(&model))])).expect("a flow");
    let said = stage.drive(execution.run(&flow, text("how many?"))).expect("an output");
    assert_eq!(said.text(), r#""seven""#);
    let texts: Vec<_> = execution.cx().messages().iter().map(|message| message.joined_text()).collect();
    assert_eq!(texts, ["how many?", "```json\n{\"n\": 7}\n```", r#"{"n":7}"#, "seven"]);
    let used = execution.cx().used();
    assert_eq!((used.iterations, used.tokens, used.cost), (2, 10, Cost(1_000_000_000)));
    assert_eq!(model.requests().last().map(|request| request.view.len()), Some(3));
}

#[test]
fn an_answer_that_is_no_json_fails_its_step() {
    let stage = Stage::new();
    let model = ScriptedModel::new([AssistantMessage::text("hello")]);
    let step = Step::model_json::<serde_json::Value>("ask", stage.agent(&model));
    let told = stage.run(step, text("in"));
    assert_eq!(told, "step `ask`: invalid model answer: expected value at line 1 column 1");
}

#[test]
fn law_3_a_step_draws_from_the_budgets_above_it() {
    let stage = Stage::new();
    let answer = || AssistantMessage::text("ok").with_usage(Usage::tokens(30, 0));
    let model = ScriptedModel::new([answer(), answer(), answer(), answer()]);
    let ask = || Step::model("ask", stage.agent(&model));
    let mut most = Amount::UNLIMITED;
    most.tokens = 50;
    let inner = Step::from(Loop::sequence("inner", [ask(), ask(), ask()])).budget(most);
    let told = stage.run(inner, text("in"));
    assert_eq!(told, "step `ask`: the limit of 50 tokens is reached at 60");
    assert_eq!(model.unused(), 2, "the third turn does not begin");
}

#[test]
fn parallel_turns_cannot_overdraw_together() {
    let stage = Stage::new();
    let model = ScriptedModel::new([AssistantMessage::text("a"), AssistantMessage::text("b")]);
    let ask = |id: &str| Step::model(id.to_owned(), stage.agent(&model));
    let mut most = Amount::UNLIMITED;
    most.iterations = 1;
    let both = Step::from(Parallel::settle("f", [ask("a"), ask("b")], |results| {
        Ok(Json::of(&results.iter().filter(|path| path.outcome.is_ok()).count()).unwrap_or_default())
    }));
    assert_eq!(stage.run(both.budget(most), text("in")), "1");
    assert_eq!(model.unused(), 1);
}

fn no_zero() -> Guarded<dyn DynGate> {
    gate::func("no-zero", |ask, _| match ask.call.arguments.text() {
        r#"{"n":0}"# => GateVerdict::Deny { message: "zero".to_owned() },
        r#"{"n":1}"# => GateVerdict::Rewrite(Json::parse(r#"{"n":10}"#).unwrap_or_default()),
        r#"{"n":2}"# => GateVerdict::Hold { reason: "two".to_owned() },
        _ => GateVerdict::Allow,
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u64,
}

#[track_caller]
fn check_tool(input: &str, fixed: &str, expected: &str) {
    let stage = Stage::new();
    let double = tool_fn("double", "Doubles", |args: Number, _| async move {
        if args.n == 13 { Err("unlucky") } else { Ok(format!("{}", 2 * args.n)) }
    });
    let json = |text: &str| Json::parse(text).expect("JSON");
    let step = Step::tool("t", Arc::new(double), json(fixed));
    let runner = stage.runner_with(|runner| runner.gates.push(no_zero()));
    assert_eq!(stage.run_with(runner, step, json(input)), expected);
}

#[test]
fn a_tool_step_is_checked_gated_and_called() {
    check_tool(r#"{"n":4}"#, "{}", r#""8""#);
    check_tool(r#"{"n":4,"m":1}"#, r#"{"n":5}"#, r#""10""#);
    check_tool(r#""text""#, r#"{"n":5}"#, r#""10""#);
    check_tool(r#"{"n":1}"#, "{}", r#""20""#);
    check_tool(r#"{"n":0}"#, "{}", "step `t`: the call of `double` was denied: zero");
    check_tool(r#"{"n":2}"#, "{}", "step `t`: the call of `double` waits for approval: two");
    check_tool(r#"{"n":13}"#, "{}", "step `t` failed: tool_execution_failed: unlucky");
    check_tool("{}", "{}", "step `t` failed: the arguments are wrong: missing field `n`");
}

/// Halts every call and says on which facts.
struct Halts;

impl Gate for Halts {
    async fn decide(&self, _: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
        let verdict = GateVerdict::Halt { message: "no".to_owned(), reason: "nothing is left".to_owned() };
        Ok(GateDecision { verdict, facts: Json::parse(r#"{"left":0}"#).ok() })
    }
}

#[test]
fn fault_42_a_gate_that_halts_ends_the_flow_and_says_why() {
    let (stage, heard) = (Stage::new(), Arc::new(Mutex::new(Vec::new())));
    let events = Arc::clone(&heard);
    let runner = stage.runner_with(|runner| runner.gates.push(gate::new("budget", Halts)));
    let runner = runner.observe(move |event: &FlowEvent| {
        if let FlowEvent::GateDecided { gate, verdict, facts, .. } = event {
            let facts = facts.as_ref().map(Json::to_string).unwrap_or_default();
            events.lock().push(format!("{gate} {verdict} {facts}"));
        }
    });
    let double = tool_fn("double", "Doubles", |args: Number, _| async move { format!("{}", 2 * args.n) });
    let input = Json::parse(r#"{"n":4}"#).expect("JSON");
    let call = Step::tool("t", Arc::new(double), Json::empty_object());
    let root = Loop::sequence("root", [call, tag("next")]);
    assert_eq!(
        stage.run_with(runner, root, input),
        "step `t`: gate `budget` halted the execution at the call of `double`: nothing is left"
    );
    assert_eq!(*heard.lock(), [r#"budget halt {"left":0}"#]);
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl StepHooks for Notes {
    async fn before(&self, step: &StepInfo, input: &Json, _: &StepCx) -> Result<(), String> {
        self.0.lock().push(format!("before {} {input}", step.path));
        if &*step.id == "forbidden" { Err("not today".to_owned()) } else { Ok(()) }
    }

    async fn after(
        &self,
        step: &StepInfo,
        output: &Result<Json, FlowError>,
        _: &StepCx,
    ) -> Result<(), String> {
        self.0.lock().push(format!("after {} {}", step.id, output.is_ok()));
        if &*step.id == "b" { Err("too late".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn hooks_are_called_around_every_step() {
    let (stage, notes, failed) = (Stage::new(), Arc::new(Notes::default()), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&failed);
    let runner =
        stage.runner_with(|runner| runner.hooks = Some(notes.clone())).observe(move |event: &FlowEvent| {
            if let FlowEvent::HookFailed(step, problem) = event {
                heard.lock().push(format!("{}: {problem}", step.id));
            }
        });
    let root = Loop::sequence("root", [tag("a"), tag("b"), tag("forbidden")]);
    let told = stage.run_with(runner, root, text("in"));
    assert_eq!(told, "step `forbidden` failed: its before hook failed: not today");
    let called = notes.0.lock().join("\n");
    insta::assert_snapshot!(called, @r#"
    before /root#0 "in"
    before /root#0/a#0 "in"
    after a true
    before /root#0/b#0 "in>a"
    after b true
    before /root#0/forbidden#0 "in>a>b"
    after forbidden false
    after root false
    "#);
    assert_eq!(*failed.lock(), ["b: too late"]);
}

#[test]
fn detached_work_tells_its_end_by_itself_and_is_paid_by_the_execution() {
    let stage = Stage::new();
    let (clock, handles) = (stage.clock.clone(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&handles);
    let start = Step::run("start", move |_: Json, cx: StepCx| {
        let (clock, kept) = (clock.clone(), Arc::clone(&kept));
        let work = Step::run("work", move |ms: u64, cx: StepCx| {
            let clock = clock.clone();
            async move {
                use harness_core::port::Clock as _;
                clock.sleep_until(clock.now().after(Millis(ms))).await;
                let mut used = Amount::NONE;
                used.tokens = 5;
                cx.charge(used).map_err(|reached| format!("{reached:?}"))?;
                Ok::<_, String>("done")
            }
        });
        async move {
            for ms in [10_u64, 1_000] {
                kept.lock().push(cx.detach(&work, Json::of(&ms).unwrap_or_default())?);
            }
            Ok::<_, FlowError>(())
        }
    });
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let flow = Flow::new(start).expect("a flow");
    let local = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _inside = local.enter();
    stage.drive(execution.run(&flow, Json::null())).expect("an output");
    let handles = handles.lock().clone();
    let [quick, late] = handles.as_slice() else { unreachable!("two were started") };
    local.block_on(tokio::task::yield_now());
    assert_eq!(quick.result(), None);
    stage.clock.advance(Millis(10));
    local.block_on(async {
        tokio::task::yield_now().await;
        assert_eq!(quick.result(), Some(Ok(Json::string("done"))));
        assert_eq!(quick.wait(None).await, Ok(Json::string("done")));
    });
    assert_eq!(execution.cx().used().tokens, 5);
    let timed_out = stage.drive(late.wait(Some(Millis(7)))).expect_err("it is still at work");
    assert!(timed_out.to_string().contains("timed out after 7 ms"), "{timed_out}");
    execution.abort("enough");
    local.block_on(tokio::task::yield_now());
    assert_eq!(late.result(), Some(Err(FlowError::Cancelled { reason: "enough".into() })));
}

#[test]
fn an_abort_drops_code_and_closes_channels() {
    let stage = Stage::new();
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let inbox = ChannelSpec::queue("inbox", 3).external();
    let spec = inbox.clone();
    let wait = Step::run("wait", move |_: Json, cx: StepCx| {
        let channel = cx.channel(&spec);
        async move { channel?.timeout(None).recv().await }
    });
    let flow = Flow::new(wait).expect("a flow");
    let outside = execution.external(&inbox).expect("a channel");
    let ended = stage.drive_with(execution.run(&flow, Json::null()), |turn| {
        if turn == 2 {
            execution.abort("stop");
        }
    });
    assert_eq!(ended, Err(FlowError::Cancelled { reason: "stop".into() }));
    assert_eq!(outside.send(Json::null()).expect_err("closed").kind(), "channel_closed");
}

#[test]
fn executions_do_not_share_channels_unless_they_say_so() {
    let stage = Stage::new();
    let runner = stage.runner();
    let (a, b) = (runner.start(ExecutionSpec::new("a")), runner.start(ExecutionSpec::new("b")));
    for (spec, heard) in
        [(ChannelSpec::value("v"), None), (ChannelSpec::value("w").shared(), Some(Json::null()))]
    {
        let spec = spec.external();
        a.external(&spec).and_then(|channel| channel.send(Json::null())).expect("it is open");
        assert_eq!(b.cx().channel(&spec).expect("a channel").try_recv(), heard);
    }
}

struct Vowels;

impl harness_host::Embedder for Vowels {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, harness_core::Fault> {
        let count = |text: &str, c: char| if text.contains(c) { 1.0 } else { 0.0 };
        Ok(texts.iter().map(|text| ['a', 'e', 'i'].map(|c| count(text, c)).to_vec()).collect())
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn name(&self) -> &'static str {
        "vowels"
    }
}

#[test]
fn a_router_chooses_by_meaning() {
    let router = || MeaningRouter::new(Arc::new(Vowels)).case("a", tag("first")).case("e", tag("second"));
    let stage = Stage::new();
    assert_eq!(stage.run(router().into_step("r"), text("hey")), r#""hey>second""#);
    assert_eq!(stage.run(router().into_step("r"), text("hi")), r#""hi""#);
    assert_eq!(stage.run(router().otherwise(tag("other")).into_step("r"), text("zzz")), r#""zzz>other""#);
    assert_eq!(stage.run(router().threshold(0.9).into_step("r"), text("ae")), r#""ae""#);
}

#[test]
fn a_flow_is_looked_through_before_it_runs() {
    let empty = Loop::new("empty", [], Until::never());
    let faults =
        Flow::new(Loop::sequence("root", [tag(""), tag("a/b"), empty.into(), tag("x").retry(Retry::new(0))]))
            .expect_err("four faults");
    let kinds: Vec<_> = faults.0.iter().map(harness_flow::FlowFault::kind).collect();
    assert_eq!(kinds, ["EMPTY_STEP_ID", "STEP_ID_FORM", "MISSING_LOOP_BODY", "RETRY_ATTEMPTS"]);
}
