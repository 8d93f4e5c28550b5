//! Conversations that are made shorter for good.

use futures_util::FutureExt as _;
use harness::core::Fault;
use harness::core::message::UserMessage;
use harness::core::port::{
    CompactAsk, CompactReason, Compaction, CompactionNote, Compactor, DynSession as _,
};
use harness::core::transcript::{Plan, Span};
use harness::prelude::*;
use harness::runtime::RuntimeError;
use harness::session::MemorySession;

use crate::support::{Script, call};

/// Shows one line in place of all but the last message, when it is asked to, or before a turn.
struct OneLine {
    unasked: bool,
}

impl Compactor for OneLine {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let instructions = match &ask.reason {
            CompactReason::Requested { instructions } => instructions.clone().unwrap_or_default(),
            _ if self.unasked && ask.cx.prepared.is_none() => "by itself".to_owned(),
            CompactReason::Request | CompactReason::Overflow | _ => return Ok(Compaction::unchanged()),
        };
        if ask.cx.log.len() < 3 {
            return Ok(Compaction::unchanged());
        }
        let line = UserMessage::text(format!("[{instructions}]"));
        let spans = [Span::Made([std::sync::Arc::new(line.into())].into()), Span::Kept(2..usize::MAX)];
        let mut done = Compaction::planned(Plan { spans: spans.into() });
        done.note = Some(CompactionNote::default());
        Ok(done)
    }
}

fn script() -> Script {
    Script::new(["one", "two", "three"].map(AssistantMessage::text))
}

async fn texts(session: &MemorySession) -> Vec<String> {
    let loaded = session.load_boxed().await.unwrap();
    loaded.messages.iter().map(|message| message.joined_text()).collect()
}

#[tokio::test]
async fn an_idle_conversation_is_shortened_on_request_and_goes_on_from_there() {
    for session in [None, Some(MemorySession::new())] {
        let model = script();
        let mut builder = Harness::new(model.clone()).compactor(OneLine { unasked: false });
        if let Some(session) = &session {
            builder = builder.session(session.clone());
        }
        let harness = builder.build().unwrap();
        assert_eq!(harness.thread().compact(None).await.unwrap(), None, "nothing to do");
        harness.prompt("a").await.unwrap();
        harness.prompt("b").await.unwrap();
        let done = harness.thread().compact(Some("keep names".into())).await.unwrap();
        assert_eq!(done.as_deref(), Some(&CompactionNote::default()));
        let report = harness.prompt("c").await.unwrap();
        assert_eq!(report.transcript.len(), 5);
        let seen = model.seen();
        let last = "user [keep names] | user b | assistant two | user c";
        assert_eq!(seen.last().map(String::as_str), Some(&*format!("main:  | {last}")));
        if let Some(session) = &session {
            assert_eq!(texts(session).await, ["[keep names]", "b", "two", "c", "three"]);
        }
    }
}

#[tokio::test]
async fn a_run_shortens_its_transcript_before_a_turn_when_that_is_wanted() {
    let (model, session) = (script(), MemorySession::new());
    let harness = Harness::new(model.clone())
        .compactor(OneLine { unasked: true })
        .session(session.clone())
        .spec(|spec| spec.compact_between_turns = true)
        .build()
        .unwrap();
    for text in ["a", "b", "c"] {
        harness.prompt(text).await.unwrap();
    }
    assert_eq!(texts(&session).await, ["[by itself]", "b", "two", "c", "three"]);
}

#[tokio::test]
async fn what_cannot_be_shortened_now_says_so() {
    let wait = tool_fn("wait", "Never ends", |_: serde_json::Value, _| async move {
        std::future::pending::<()>().await;
        Ok::<_, std::io::Error>("")
    });
    let model = Script::new([call("c1", "wait", "{}")]);
    let harness = Harness::new(model).tool(wait).compactor(OneLine { unasked: false }).build().unwrap();
    let mut run = harness.prompt("go");
    assert!((&mut run).now_or_never().is_none(), "it waits for the tool");
    let kind = |error: RuntimeError| {
        if let RuntimeError::Compaction(fault) = &error {
            fault.code.to_string()
        } else {
            error.kind().to_owned()
        }
    };
    assert_eq!(harness.thread().compact(None).await.map_err(kind), Err("runtime.busy".into()));
    let pay = tool_fn("pay", "Pays", |_: serde_json::Value, _| async move { Ok::<_, std::io::Error>("") });
    let held = Harness::new(Script::new([call("c1", "pay", "{}")]))
        .tool(pay)
        .gate(gate::needs_approval("all", |_| Some("it is asked about".to_owned())))
        .compactor(OneLine { unasked: false })
        .build()
        .unwrap();
    held.prompt("go").await.unwrap();
    assert_eq!(held.thread().compact(None).await.map_err(kind), Err("open_calls".into()));
    let without = Harness::new(script()).build().unwrap();
    assert_eq!(without.thread().compact(None).await.map_err(kind), Err("no_compactor".into()));
}
