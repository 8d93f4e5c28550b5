//! Executions within executions.

use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::{AppendSource, ContextPipeline as _, ViewCx};
use harness_core::transcript::Transcript;
use harness_core::{Outcome, ParentCall};
use harness_memory::layer::{FnLayer, LayerDef, LayerSetup, Spawned, Update, developer};

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
            Update::set(&list)
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

/// The context of work that a call of `parent` started.
fn child_of(parent: &ViewCx, log: &Transcript) -> ViewCx {
    let mut origin = parent.origin.child(ParentCall::new("c1", "desk", &parent.origin));
    origin.run = Some("child".into());
    let mut child = cx_of("child", log);
    child.origin = std::sync::Arc::new(origin);
    child
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
        let child = child_of(&parent, log);
        stage.layers.begin(&child).await.unwrap();
        let said: Message = AssistantMessage::text("x").with_usage(Usage::tokens(70, 5)).into();
        let said = std::sync::Arc::new(said);
        stage.layers.after_model(&said, &child).await.unwrap();
        let found = Update::Set(json(r#"["root","lost"]"#));
        stage.layers.set_layer_state("child", &"list".into(), found).await.unwrap();
        stage.layers.complete(Outcome::Failed, &child).await.unwrap();
        stage.layers.store(&said, &parent).await.unwrap();
    });
    assert_eq!(stage.layers.layer_state("run", &"list".into()), Ok(Some(json(r#"["root"]"#))));
    assert_eq!(lines.take(), ["Some(70)"]);
}

#[test]
fn a_layer_without_a_say_begins_afresh_in_the_child() {
    let fresh = FnLayer::new(LayerDef::new("fresh", 10, [])).on_init(|_, _| async { Update::set("new") });
    let stage = with_parent(LayerSetup::new().with(fresh), async |stage, log| {
        stage.layers.begin(&child_of(&cx(log), log)).await.unwrap();
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
            let child = child_of(&cx(log), log);
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
