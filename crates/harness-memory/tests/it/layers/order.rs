//! In which order layers are asked in a turn.

use harness_core::port::{AppendSource, ContextPipeline as _};
use harness_core::{Cancel, Json, Outcome};
use harness_memory::layer::{Appended, Decision, FnLayer, LayerDef, LayerSetup, Recalled, Scope, Update};

use super::{Lines, Stage, answer, cx, json, log, run, user};

/// A layer that leaves a line for each hook that it is asked.
fn telling(id: &'static str, slot: i32, lines: &Lines) -> FnLayer {
    let say = {
        let lines = lines.clone();
        move |hook: &str| lines.push(format!("{hook} {id}"))
    };
    macro_rules! hook {
        ($layer:expr, $with:ident, $name:literal, $answer:expr) => {{
            let say = say.clone();
            $layer.$with(move |ask, _| {
                say($name);
                let answer = $answer;
                async move { Ok(answer(ask)) }
            })
        }};
    }
    let layer = FnLayer::new(LayerDef::new(id, slot, []));
    let layer = hook!(layer, on_init, "init", |_| Update::Keep);
    let layer = hook!(layer, on_append, "append", |ask: harness_memory::layer::AppendAsk| {
        Appended::items(ask.items)
    });
    let layer = hook!(layer, on_recall, "recall", |_| Recalled::nothing());
    let layer = hook!(layer, on_project_history, "project", |history| history);
    let layer = hook!(layer, on_after_model, "judge", |_| Decision::Allow.into());
    let layer = hook!(layer, on_store, "store", |_| Update::Keep);
    let layer = hook!(layer, on_complete, "complete", |_| Update::Keep);
    hook!(layer, on_dispose, "dispose", |()| ())
}

#[test]
fn a_turn_asks_by_slot_and_begins_and_ends_by_declaration() {
    let lines = Lines::default();
    let stage =
        Stage::new(LayerSetup::new().with(telling("late", 20, &lines)).with(telling("early", 10, &lines)));
    let log = log([user("go")]);
    let cx = cx(&log);
    run(&stage.clock, async {
        stage.layers.begin(&cx).await.unwrap();
        stage.layers.begin(&cx).await.unwrap();
        stage.layers.append(AppendSource::Prompt, vec![user("go")], &cx).await.unwrap();
        assert_eq!(stage.layers.recall(&cx).await.unwrap(), None, "nothing is shown but the transcript");
        stage.layers.after_model(&answer("done"), &cx).await.unwrap();
        stage.layers.store(&answer("done"), &cx).await.unwrap();
        stage.layers.complete(Outcome::Completed, &cx).await.unwrap();
    });
    insta::assert_snapshot!(lines.take().join("\n"), @r"
    init late
    init early
    append early
    append late
    recall early
    recall late
    project early
    project late
    judge early
    judge late
    store early
    store late
    complete late
    complete early
    dispose early
    dispose late
    ");
    assert!(stage.layers.run("run").is_err(), "the states of an execution that is over are let go");
    assert_eq!(stage.reports.take(), [""; 0]);
}

#[test]
fn the_end_says_how_it_came() {
    #[track_caller]
    fn check(outcome: Outcome, cancelled: bool, expected: &str) {
        let lines = Lines::default();
        let told = lines.clone();
        let layer = FnLayer::new(LayerDef::new("end", 10, [])).on_complete(move |ending, _| {
            told.push(ending.to_string());
            async { Ok(Update::Keep) }
        });
        let stage = Stage::new(LayerSetup::new().with(layer));
        let (log, cancel) = (log([]), Cancel::new());
        let cx = cx(&log).until(None, cancel.clone());
        run(&stage.clock, async {
            stage.layers.begin(&cx).await.unwrap();
            if cancelled {
                cancel.cancel();
            }
            stage.layers.complete(outcome, &cx).await.unwrap();
            stage.layers.complete(outcome, &cx).await.unwrap();
        });
        assert_eq!(lines.take(), [expected]);
    }
    check(Outcome::Completed, false, "success");
    check(Outcome::Failed, false, "failure");
    check(Outcome::Failed, true, "aborted");
    check(Outcome::Deferred, false, "paused");
    check(Outcome::AwaitingApproval, false, "paused");
}

#[test]
fn restored_state_counts_as_initialised() {
    let lines = Lines::default();
    let told = lines.clone();
    let layer = FnLayer::new(LayerDef::new("count", 10, [])).on_init(move |_, _| {
        told.push("init");
        async { Ok(Update::Set(Json::of(&0).unwrap())) }
    });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let log = log([]);
    let cx = cx(&log);
    let execution = harness_memory::layer::Pipeline::execution_of(&cx.origin);
    stage.layers.restore(execution, [("count".into(), json("5"))]);
    run(&stage.clock, stage.layers.begin(&cx)).unwrap();
    assert_eq!(stage.layers.layer_state("run", &"count".into()), Ok(Some(json("5"))));
    assert_eq!(lines.take(), [""; 0]);
    let snapshot = stage.layers.run("run").unwrap().snapshot();
    assert_eq!(snapshot.into_iter().collect::<Vec<_>>(), [("count".into(), json("5"))]);
}

#[test]
fn an_execution_that_is_taken_up_again_has_lost_nothing() {
    let layer = FnLayer::new(LayerDef::new("count", 10, [])).on_init(|_, _| async { Update::set(&0) });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let (log, count) = (log([]), "count".into());
    let cx = cx(&log);
    let state_after = |outcome| {
        run(&stage.clock, async {
            stage.layers.begin(&cx).await.unwrap();
            stage.layers.set_layer_state("run", &count, Update::Set(json("3"))).await.unwrap();
            stage.layers.complete(outcome, &cx).await.unwrap();
            stage.layers.begin(&cx).await.unwrap();
        });
        stage.layers.layer_state("run", &count).unwrap()
    };
    assert_eq!(state_after(Outcome::AwaitingApproval), Some(json("3")));
    assert_eq!(state_after(Outcome::Completed), Some(json("0")));
}

#[test]
fn the_query_is_what_somebody_asked_last() {
    use harness_core::message::{Message, UserMessage};

    let lines = Lines::default();
    let told = lines.clone();
    let layer = FnLayer::new(LayerDef::new("query", 10, [])).on_recall(move |ask, _| {
        told.push(&*ask.query);
        async { Ok(Recalled::nothing()) }
    });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let guidance = Message::User(UserMessage::text("be brief").from_origin("hook"));
    let mut log = log([user("first"), answer("a"), user("second"), answer("b")]);
    run(&stage.clock, stage.layers.recall(&cx(&log))).unwrap();
    log.push(std::sync::Arc::new(guidance));
    run(&stage.clock, stage.layers.recall(&cx(&log))).unwrap();
    log.push(user("third"));
    run(&stage.clock, stage.layers.recall(&cx(&log))).unwrap();
    assert_eq!(lines.take(), ["second", "second", "third"]);
}

#[test]
fn a_failing_init_fails_the_run_or_leaves_the_layer_out() {
    use harness_memory::MemoryError;
    use harness_memory::layer::OnInitError;

    let failing = |on_error| {
        let mut def = LayerDef::new("bad", 10, []).with_scope(Scope::Execution);
        def.on_init_error = on_error;
        FnLayer::new(def)
            .on_init(|_, _| async { Err(MemoryError::failed("no disk")) })
            .on_recall(|_, _| async { Ok(Recalled::text("never")) })
    };
    let log = log([user("go")]);
    let cx = cx(&log);
    let stage = Stage::new(LayerSetup::new().with(failing(OnInitError::Throw)));
    let fault = run(&stage.clock, stage.layers.begin(&cx)).unwrap_err();
    assert_eq!((&*fault.code, &*fault.message), ("memory.hook_failed", "no disk"));
    assert_eq!(run(&stage.clock, stage.layers.begin(&cx)).unwrap_err(), fault, "it fails once and for all");

    let stage = Stage::new(LayerSetup::new().with(failing(OnInitError::Disable)));
    run(&stage.clock, stage.layers.begin(&cx)).unwrap();
    assert_eq!(run(&stage.clock, stage.layers.recall(&cx)), Ok(None));
    assert_eq!(stage.reports.take(), ["layer `bad`, init: no disk"]);
}
