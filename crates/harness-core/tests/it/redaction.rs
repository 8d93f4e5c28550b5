//! Known secrets are in nothing that a run emits, stores or sends, wherever they come from.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, Fold, Seen};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall};
use harness_core::port::{DeltaPart, ProviderEvent, Secret};
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{ToolError, ToolOutcome, ToolUpdates, Toolbox, tool_fn};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, Json, Origin, Redactor, Time};
use parking_lot::Mutex;

const KEY: &str = "sk-0123456789abcdef";

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<String>>);

impl Notes {
    fn add(&self, value: &impl std::fmt::Debug) {
        let _ = writeln!(self.0.lock(), "{value:?}");
    }
}

impl Fold for Notes {
    fn apply(&mut self, event: &Event) {
        self.add(event);
    }
}

impl ToolUpdates for Notes {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        self.add(&(call, content));
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn call(id: &str, tool: &str, arguments: &str) -> Block {
    Block::ToolCall(Arc::new(ToolCall::new(id, tool, Json::parse(arguments).expect("JSON"))))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
async fn fault_11_a_known_secret_is_nowhere() {
    let mut leaks = AssistantMessage::calls([ToolCall::new("c1", "leak", Json::empty_object())]);
    leaks.content.push(call("c2", "fail", &format!(r#"{{"why":"{KEY}"}}"#)));
    leaks.content.insert(0, Block::text(format!("I read {KEY}.")));
    let steps = [
        ModelStep::answer(leaks)
            .with_deltas(["I read sk-01234", "56789ab", "cdef."].map(|t| DeltaPart::Text(t.into()))),
        ModelStep::answer(AssistantMessage::text(format!("The key is {KEY}"))).with_deltas([
            DeltaPart::Thinking("sk-0123".into()),
            DeltaPart::Text("The key is sk-".into()),
            DeltaPart::Provider(ProviderEvent::new(Json::string("sk-01234"))),
            DeltaPart::Thinking("456789abcdef".into()),
            DeltaPart::Text("0123456789abcdef".into()),
        ]),
    ];
    let model = ScriptedModel::new(steps);
    let mut ports = Ports::new(Arc::new(model.clone()), Arc::new(VirtualClock::still(Time(0))));
    let leak = tool_fn("leak", "", |_: Nothing, cx| async move {
        cx.emit(vec![Block::text(format!("so far: {KEY}"))]);
        let mut outcome =
            ToolOutcome::structured(Json::parse(&format!(r#"{{"env":"A={KEY}"}}"#)).expect("JSON"));
        outcome.metadata = Some(Json::string(KEY));
        outcome
    });
    let fail =
        harness_core::tool::FnTool::with_schema("fail", "", Json::empty_object(), |_: Json, _| async move {
            Err::<String, _>(
                ToolError::new("leaky", format!("cannot use {KEY}")).with_metadata(Json::string(KEY)),
            )
        });
    ports.tools = Arc::new(Toolbox::new([Arc::new(leak) as _, Arc::new(fail) as _]));
    let notes = Notes::default();
    ports.hub.fold(notes.clone());
    let mut seen = ports.hub.subscribe(1024);
    ports.updates = Some(Arc::new(notes.clone()));
    ports.redactor = Some(Redactor::new([Secret::new(KEY)]));
    let mut spec = TurnSpec::default();
    spec.limits.iterations = 4;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let start = Start::prompt(Message::user(format!("My key is {KEY}, use it.")));
    let end = drive(&mut turn, &ports, &Cancel::never(), start).await;
    let mut streamed = [String::new(), String::new()];
    while let Some(seen) = seen.try_next() {
        if let Seen::Delta(delta) = &seen {
            match &delta.part {
                DeltaPart::Text(text) => streamed[0].push_str(text),
                DeltaPart::Thinking(text) => streamed[1].push_str(text),
                other => panic!("{other:?}"),
            }
        }
        notes.add(&seen);
    }
    notes.add(&end);
    notes.add(&model.requests());
    let log: Vec<_> = turn.log().prefix().iter().cloned().collect();
    notes.add(&log);
    let all = notes.0.lock().clone();
    assert!(!all.contains(KEY), "{all}");
    assert_eq!(end.answer.as_deref(), Some("The key is [redacted]"));
    assert_eq!(streamed, ["I read [redacted].The key is [redacted]", "[redacted]"]);
    for expected in
        ["My key is [redacted], use it.", "so far: [redacted]", "A=[redacted]", "cannot use [redacted]"]
    {
        assert!(all.contains(expected), "{expected}: {all}");
    }
}
