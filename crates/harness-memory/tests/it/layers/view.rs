//! The view: bands around the newest history that fits, and what it says of itself.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, CustomMessage, Message, SystemMessage, ToolCall, ToolResultMessage,
};
use harness_core::port::{AppendSource, ContextPipeline as _, PreparedAgent};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Transcript, View};
use harness_memory::layer::{
    Appended, FnLayer, History, LayerDef, LayerSetup, Placement, Recalled, ViewBudget,
};
use proptest::prelude::*;

use super::{Stage, answer, cx, log, run, user};

fn saying(id: &'static str, slot: i32, placement: Placement, text: &'static str) -> FnLayer {
    FnLayer::new(LayerDef::new(id, slot, []).with_placement(placement))
        .on_recall(move |_, _| async move { Ok(Recalled::text(text)) })
}

/// What a model is sent.
fn texts(stage: &Stage, log: &Transcript) -> Vec<String> {
    let plan = run(&stage.clock, stage.layers.recall(&cx(log))).unwrap();
    let view = plan.map_or_else(|| View::whole(log.prefix()), |plan| View::planned(log.prefix(), plan));
    let mut texts = Vec::new();
    view.for_each(|message| texts.push(message.joined_text()));
    texts
}

fn called(id: &str) -> [Arc<Message>; 2] {
    let call = ToolCall::new(id, "look", Json::empty_object());
    let result = ToolResultMessage::new(&call, vec![Block::text(format!("saw {id}"))], false);
    [Arc::new(AssistantMessage::calls([call]).into()), Arc::new(result.into())]
}

#[test]
fn the_bands_stand_in_their_order() {
    let stage = Stage::new(
        LayerSetup::new()
            .with(saying("clock", 80, Placement::Live, "noon"))
            .with(saying("rules", 200, Placement::Anchor, "be brief"))
            .with(saying("facts", 100, Placement::Anchor, "the sea is wet")),
    );
    let system = Arc::new(Message::System(SystemMessage::text("house rules")));
    let log = log([user("hello"), system, answer("hi"), user("go")]);
    assert_eq!(
        texts(&stage, &log),
        ["house rules", "the sea is wet", "be brief", "hello", "hi", "go", "noon"]
    );
}

#[test]
fn history_gives_way_first_and_never_leaves_half_of_a_call() {
    let [call, result] = called("c1");
    let log = log([user(&"q".repeat(400)), call, Arc::clone(&result), answer("seen"), user("go")]);
    let tail: usize =
        [4, 3].iter().map(|at| serde_json::to_string(&**log.get(*at).unwrap()).unwrap().len()).sum();
    let result_cost = serde_json::to_string(&*result).unwrap().len();
    let budget = u64::try_from((tail + result_cost) / 4 + 4).unwrap();
    let stage = Stage::new(idle(budget));
    assert_eq!(texts(&stage, &log), ["seen", "go"], "the result would fit, but not its call");
    let dropped = &stage.layers.usage("run").unwrap().dropped;
    assert_eq!((dropped.len(), dropped[0].items), (1, 3));
}

/// A layer that shows nothing, and a budget.
fn idle(tokens: u64) -> LayerSetup {
    let idle =
        FnLayer::new(LayerDef::new("idle", 10, [])).on_recall(|_, _| async { Ok(Recalled::nothing()) });
    let mut setup = LayerSetup::new().with(idle);
    setup.budget = Some(ViewBudget::new(tokens, 0));
    setup
}

#[test]
fn the_newest_message_is_shown_even_when_nothing_fits() {
    let stage = Stage::new(idle(1));
    assert_eq!(texts(&stage, &log([user("old"), user("new")])), ["new"]);
    let [call, result] = called("c1");
    assert_eq!(texts(&stage, &log([user("old"), call, result])), ["", "saw c1"]);
}

#[test]
fn a_layer_may_show_another_history() {
    let layer = FnLayer::new(LayerDef::new("quiet", 10, [])).on_project_history(|history, _| async move {
        Ok(history.filtered(|message| message.joined_text() != "noise"))
    });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let log = log([user("a"), answer("noise"), user("b")]);
    assert_eq!(texts(&stage, &log), ["a", "b"]);
    assert_eq!(log.len(), 3);
}

#[test]
fn unknown_items_of_a_layer_are_refused() {
    let custom = || Arc::new(Message::Custom(CustomMessage::new("note", None)));
    let layer = FnLayer::new(LayerDef::new("notes", 10, []))
        .on_recall(move |_, _| async move { Ok(Recalled::items(vec![custom()])) })
        .on_append(move |_, _| async move { Ok(Appended::items(vec![custom()])) });
    let stage = Stage::new(LayerSetup::new().with(layer));
    let log = log([user("go")]);
    assert_eq!(texts(&stage, &log), ["go"]);
    let cx = cx(&log);
    let appended = run(&stage.clock, stage.layers.append(AppendSource::Prompt, vec![user("go")], &cx));
    assert_eq!(appended.unwrap()[0].joined_text(), "go");
    assert_eq!(
        stage.reports.take(),
        [
            "layer `notes`, recall: no registered schema accepts an item of type `note`",
            "layer `notes`, onItemAppend: no registered schema accepts an item of type `note`",
        ]
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn the_report_says_what_was_sent() {
    let stage =
        Stage::new(LayerSetup::new().with(saying("clock", 80, Placement::Live, "noon")).with(saying(
            "facts",
            100,
            Placement::Anchor,
            "the sea is wet",
        )));
    let log = log([user("go")]);
    let prepared = PreparedAgent::new("main", "You are a pilot.", [ToolDef::new("tide", "The tide")]);
    let cx = cx(&log).with_prepared(Arc::new(prepared));
    run(&stage.clock, stage.layers.recall(&cx)).unwrap();
    let usage = stage.layers.usage("run").unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&usage).unwrap(), @r#"
    {
      "executionId": "run",
      "layers": [
        {
          "layerId": "clock",
          "tokenCount": 1,
          "items": 1,
          "placement": "live",
          "served": "fresh",
          "changed": false,
          "churnRate": 0.0,
          "rebillTokens": 0
        },
        {
          "layerId": "facts",
          "tokenCount": 4,
          "items": 1,
          "placement": "anchor",
          "served": "fresh",
          "changed": false,
          "churnRate": 0.0,
          "rebillTokens": 0
        }
      ],
      "systemPromptTokens": 4,
      "toolsTokens": 49,
      "systemTokens": 0,
      "anchorTokens": 22,
      "historyTokens": 14,
      "liveTokens": 19,
      "supersedeTokens": 0,
      "totalUsedTokens": 108,
      "dropped": [],
      "epoch": {
        "id": "t:thread#0",
        "age": 1,
        "anchorTokens": 4,
        "liveTokens": 1,
        "deltaTokens": 0,
        "reanchorReason": "cold-start"
      },
      "exhaustedGuides": 0,
      "spent": {
        "modelCalls": 0,
        "toolCalls": 0
      }
    }
    "#);
    let parts = usage.system_prompt_tokens
        + usage.tools_tokens
        + usage.anchor_tokens
        + usage.history_tokens
        + usage.live_tokens;
    assert_eq!(usage.total_used_tokens, parts);
}

/// Turns of a conversation: a question, then batches of calls with their results, then an answer.
fn conversation() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let turn = (0_usize..60, prop::collection::vec((1_usize..4, 0_usize..120), 0..3), any::<bool>());
    prop::collection::vec(turn, 1..8).prop_map(|turns| {
        let mut messages = Vec::new();
        for (at, (words, batches, system)) in turns.into_iter().enumerate() {
            if system {
                messages.push(Arc::new(Message::System(SystemMessage::text(format!("note {at}")))));
            }
            messages.push(user(&"word ".repeat(words)));
            for (batch, (calls, size)) in batches.into_iter().enumerate() {
                let id = |call: usize| format!("{at}.{batch}.{call}");
                let call = |n: usize| ToolCall::new(id(n), "look", Json::empty_object());
                messages.push(Arc::new(AssistantMessage::calls((0..calls).map(call)).into()));
                let results = (0..calls).map(|n| {
                    let content = vec![Block::text("x".repeat(size))];
                    Arc::new(ToolResultMessage::new(&call(n), content, false).into())
                });
                messages.extend(results);
            }
            messages.push(answer(&"reply ".repeat(words)));
        }
        messages
    })
}

/// A layer that leaves out some messages, and one that puts its own words in the place of others.
fn meddling(drop: usize, reword: usize) -> FnLayer {
    FnLayer::new(LayerDef::new("meddle", 10, [])).on_project_history(move |history, _| async move {
        let mut at = 0;
        let filtered = history.filtered(|_| {
            at += 1;
            drop == 0 || at % drop != 0
        });
        if reword == 0 || filtered.len() < reword {
            return Ok(filtered);
        }
        let middle = filtered.len() / 2;
        let made = harness_core::transcript::Span::Made(Arc::from([user("reworded")]));
        let made = History::of(history.log().clone(), [made]);
        Ok(filtered.slice(0..middle).then(&made).then(&filtered.slice(middle + 1..filtered.len())))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn law_6_no_view_splits_a_call_or_exceeds_its_budget(
        messages in conversation(),
        tokens in 1_u64..2_000,
        window in prop::option::of(0_usize..20),
        drop in 0_usize..5,
        reword in 0_usize..3,
    ) {
        let mut budget = ViewBudget::new(tokens, 0);
        budget.window = window;
        let setup = || {
            let mut setup = LayerSetup::new()
                .with(meddling(drop, reword))
                .with(saying("facts", 20, Placement::Anchor, "the sea is wet"));
            setup.budget = Some(budget);
            setup
        };
        let log: Transcript = messages.into_iter().collect();
        let stage = Stage::new(setup());
        let plan = run(&stage.clock, stage.layers.recall(&cx(&log))).unwrap();
        prop_assert_eq!(stage.reports.take(), Vec::<String>::new());
        let usage = stage.layers.usage("run").unwrap();

        let view = plan.clone().map_or_else(|| View::whole(log.prefix()), |p| View::planned(log.prefix(), p));
        if let Some(plan) = &plan {
            prop_assert_eq!(plan.check(&log.prefix()), Ok(()));
        }
        let (mut open, mut shown) = (Vec::new(), Vec::new());
        view.for_each(|message| shown.push(Arc::clone(message)));
        for message in &shown {
            match &**message {
                Message::Assistant(answer) => {
                    prop_assert!(open.is_empty(), "a call has no result");
                    open.extend(answer.tool_calls().map(|call| call.id.clone()));
                }
                Message::ToolResult(result) => {
                    let asked = open.iter().position(|id| *id == result.tool_call_id);
                    prop_assert!(asked.is_some(), "a result has no call");
                    open.remove(asked.unwrap());
                }
                Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {
                    prop_assert!(open.is_empty(), "a call has no result");
                }
            }
        }
        prop_assert!(open.is_empty(), "a call has no result");

        let room = tokens.saturating_sub(usage.system_tokens + usage.anchor_tokens);
        let results = |m: &&Arc<Message>| matches!(***m, Message::ToolResult(_));
        let history = shown.iter().filter(|m| !matches!(***m, Message::System(_))).count();
        let newest = 1 + shown.iter().rev().take_while(results).count();
        prop_assert!(usage.history_tokens <= room || history <= newest, "{usage:?}");

        let again = Stage::new(setup());
        let other = run(&again.clock, again.layers.recall(&cx(&log))).unwrap();
        prop_assert_eq!(plan, other, "the same inputs give the same view");
    }
}
