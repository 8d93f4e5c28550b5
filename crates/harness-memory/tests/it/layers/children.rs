//! Executions within executions.

use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::{AppendSource, ContextPipeline as _};
use harness_core::transcript::Transcript;
use harness_core::{Outcome, ParentCall};
use harness_memory::layer::{Execution, FnLayer, LayerDef, LayerSetup, Returned, Spawned, Update, developer};

use super::{Lines, Stage, cx, cx_of, json, log, run, user};

/// A list that children copy and whose additions come back.
fn list() -> FnLayer {
    FnLayer::new(LayerDef::new("list", 10, []))
        .on_init(|_, _| async { Update::set(&["root"]) })
        .on_spawn(|_, cx| async move {
            Ok(cx.state.map(|state| Spawned::state(state).with_items(vec![developer("you are a child")])))
        })
        .on_child_return(|ask, cx| async move {
            let mut list: Vec<String> = cx.state_as()?;
            let child: Vec<String> = ask.child_state.to().unwrap_or_default();
            list.extend(child.into_iter().skip(1));
            let result = ask.result.unwrap_or_default();
            Ok(Returned::state(Update::set(&list)?).with_result(format!("{result}!")))
        })
}

fn with_parent(setup: LayerSetup, work: impl AsyncFnOnce(&Stage, &Transcript)) -> Stage {
    let stage = Stage::new(setup);
    let log = log([user("go")]);
    run(&stage.clock, async {
        stage.layers.begin(&cx(&log)).await.unwrap();
        work(&stage, &log).await;
    });
    stage
}

#[test]
fn a_child_begins_with_what_it_is_given_and_what_it_learned_comes_back() {
    let stage = with_parent(LayerSetup::new().with(list()), async |stage, log| {
        let parent = cx(log);
        let child = Execution::new("run").child("child");
        let child = stage.layers.spawn("run", child, &parent).await.unwrap();
        assert_eq!(child.items[0].joined_text(), "you are a child");
        let in_child = cx_of("child", log);
        stage.layers.begin(&in_child).await.unwrap();
        let found = Update::Set(json(r#"["root","found"]"#));
        stage.layers.set_layer_state("child", &"list".into(), found).await.unwrap();
        stage.layers.complete(Outcome::Completed, &in_child).await.unwrap();
        let result = stage.layers.join("child", log, Some("done".to_owned()), &parent).await;
        assert_eq!(result, Ok(Some("done!".to_owned())));
    });
    assert_eq!(stage.layers.layer_state("run", &"list".into()), Ok(Some(json(r#"["root","found"]"#))));
    assert!(stage.layers.run("child").is_err(), "the child's state is let go");
}

#[test]
fn a_failed_child_teaches_nothing_but_is_paid_for() {
    let lines = Lines::default();
    let told = lines.clone();
    let spying = FnLayer::new(LayerDef::new("spy", 20, [])).on_store(move |_, cx| {
        told.push(format!("{:?}", cx.usage.input_tokens));
        async { Ok(Update::Keep) }
    });
    let stage = with_parent(LayerSetup::new().with(list()).with(spying), async |stage, log| {
        let parent = cx(log);
        stage.layers.spawn("run", Execution::new("run").child("child"), &parent).await.unwrap();
        let said: Message = AssistantMessage::text("x").with_usage(Usage::tokens(70, 5)).into();
        let said = std::sync::Arc::new(said);
        stage.layers.after_model(&said, &cx_of("child", log)).await.unwrap();
        let found = Update::Set(json(r#"["root","lost"]"#));
        stage.layers.set_layer_state("child", &"list".into(), found).await.unwrap();
        stage.layers.abandon("child").unwrap();
        stage.layers.store(&said, &parent).await.unwrap();
    });
    assert_eq!(stage.layers.layer_state("run", &"list".into()), Ok(Some(json(r#"["root"]"#))));
    assert_eq!(lines.take(), ["Some(70)"]);
}

#[test]
fn a_layer_without_a_say_begins_afresh_in_the_child() {
    let fresh = FnLayer::new(LayerDef::new("fresh", 10, [])).on_init(|_, _| async { Update::set("new") });
    let stage = with_parent(LayerSetup::new().with(fresh), async |stage, log| {
        stage.layers.spawn("run", Execution::new("run").child("child"), &cx(log)).await.unwrap();
        let found = stage.layers.layer_state("child", &"fresh".into());
        assert_eq!(found, Ok(Some(json("\"new\""))));
    });
    assert_eq!(stage.reports.take(), [""; 0]);
}

#[test]
fn work_that_a_call_began_is_a_child_of_the_work_that_made_the_call() {
    for (outcome, learned) in [(Outcome::Completed, r#"["root","found"]"#), (Outcome::Failed, r#"["root"]"#)]
    {
        let stage = with_parent(LayerSetup::new().with(list()), async |stage, log| {
            let origin = cx(log).origin;
            let mut origin = origin.child(ParentCall::new("c1", "desk", &origin));
            origin.run = Some("child".into());
            let mut child = cx_of("child", log);
            child.origin = std::sync::Arc::new(origin);
            stage.layers.begin(&child).await.unwrap();
            let prompt = vec![user("look")];
            let begun = stage.layers.append(AppendSource::Prompt, prompt, &child).await.unwrap();
            let texts: Vec<String> = begun.iter().map(|message| message.joined_text()).collect();
            assert_eq!(texts, ["you are a child", "look"]);
            let found = Update::Set(json(r#"["root","found"]"#));
            stage.layers.set_layer_state("child", &"list".into(), found).await.unwrap();
            stage.layers.complete(outcome, &child).await.unwrap();
        });
        assert_eq!(stage.layers.layer_state("run", &"list".into()), Ok(Some(json(learned))));
        assert!(stage.layers.run("child").is_err(), "the child's state is let go");
    }
}
