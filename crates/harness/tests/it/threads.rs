//! Many conversations with the parts of one builder.

use std::path::Path;
use std::sync::Arc;

use harness::core::event::{Event, Fold};
use harness::core::message::UserMessage;
use harness::core::port::Decision;
use harness::core::tool::DynTool;
use harness::descriptor::{Map, Value, load_text};
use harness::prelude::*;
use harness::runtime::{Approvals, DeliveryMode, Runtime, StartAt, ThreadEvent};
use harness::session::MemorySession;
use harness::system::SystemClock;
use harness::tools::{Keep, Modes, WorkTools};
use harness::{BoundGraph, Builder, SessionStore};
use parking_lot::Mutex;

use crate::support::{Script, call};

const DESK: &str = "
runtime: { entry_agent: desk }
context:
  fields: { user.name: { default: nobody }, said: { default: '{{input.message}}' } }
  references: { user.name: true, said: true }
agent_defaults: { model: small }
agents: { desk: { instructions: 'To {{context.user.name}}, who said {{context.said}}.' } }
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn pay() -> Arc<dyn DynTool> {
    Arc::new(
        tool_fn("pay", "Pays", |_: Nothing, _| async move { Ok::<_, std::io::Error>("paid") })
            .needs_approval(),
    )
}

#[tokio::test]
async fn each_run_sees_the_context_of_its_own_message() {
    let script = Script::new(["one", "two", "three"].map(AssistantMessage::text));
    let graph = BoundGraph::bind(&load_text(DESK).unwrap(), Vec::<(String, _)>::new()).unwrap();
    let mut context = Map::new();
    context.insert("user", Value::Map([(Arc::from("name"), Value::from("Ada"))].into_iter().collect()));
    let runtime = Harness::new(script.clone()).graph(graph).context(context).build_runtime().unwrap();
    runtime.thread("a").prompt("hello").await.unwrap();
    runtime.thread("b").prompt("good day").await.unwrap();
    runtime.thread("a").execute(UserMessage::text("bye"), DeliveryMode::default()).unwrap();
    runtime.thread("a").response().await.unwrap();
    insta::assert_snapshot!(script.seen().join("\n"), @"
    desk: To Ada, who said hello. | user hello
    desk: To Ada, who said good day. | user good day
    desk: To Ada, who said bye. | user hello | assistant one | user bye
    ");
}

/// Notes the thread of each event; what it has noted is one line of the list when the run ends.
struct Seen(Arc<Mutex<Vec<String>>>, Vec<String>);

impl Fold for Seen {
    fn apply(&mut self, event: &Event) {
        self.1.extend(event.origin.thread.as_ref().map(ToString::to_string));
    }

    fn flush(&mut self) {
        self.1.dedup();
        self.0.lock().push(self.1.join(" "));
    }
}

#[tokio::test]
async fn each_run_has_its_observer_or_all_have_one() {
    let (own, common) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
    let each = Arc::clone(&own);
    let script = Script::new(["one", "two", "three"].map(AssistantMessage::text));
    let runtime = Harness::new(script)
        .fold(Seen(Arc::clone(&common), Vec::new()))
        .fold_each(move || Seen(Arc::clone(&each), Vec::new()))
        .build_runtime()
        .unwrap();
    for thread in ["a", "b", "a"] {
        runtime.thread(thread).prompt("hello").await.unwrap();
    }
    assert_eq!(*own.lock(), ["a", "b", "a"]);
    assert_eq!(*common.lock(), ["a", "a b", "a b a"]);
}

/// Two agents, of whom the first hands over to the second.
const TWO: &str = "
runtime: { entry_agent: desk }
agent_defaults: { model: small }
agents:
  desk: { instructions: You are the desk., handoffs: [expert] }
  expert: { instructions: You know., handoffDescription: Knows. }
";

#[tokio::test]
async fn a_run_goes_on_with_the_last_agent_or_begins_with_the_first() {
    for (from_entry, expected) in [(false, ["desk", "expert", "expert"]), (true, ["desk", "expert", "desk"])]
    {
        let hand_over = call("c1", "handoff_to_expert", "{}");
        let script = Script::new([hand_over, AssistantMessage::text("one"), AssistantMessage::text("two")]);
        let graph = BoundGraph::bind(&load_text(TWO).unwrap(), Vec::<(String, _)>::new()).unwrap();
        let mut builder = Harness::new(script.clone()).graph(graph);
        if from_entry {
            builder = builder.runs_from_entry();
        }
        let thread = builder.build_runtime().unwrap().thread("a");
        thread.prompt("hello").await.unwrap();
        thread.prompt("and now?").await.unwrap();
        let seen = script.seen();
        let asked: Vec<&str> = seen.iter().filter_map(|request| Some(request.split_once(':')?.0)).collect();
        assert_eq!(asked, expected);
    }
}

#[tokio::test]
async fn what_belongs_to_one_conversation_is_refused() {
    let builder = Harness::new(Script::default()).session(MemorySession::new()).thread("a");
    let error = builder.build_runtime().unwrap_err();
    insta::assert_snapshot!(error, @"
    `session` belongs to one conversation, and a runtime has many: leave it out
    `thread` belongs to one conversation, and a runtime has many: leave it out
    ");
}

#[tokio::test]
async fn held_calls_are_decided_from_elsewhere() {
    let script = Script::new([call("c1", "pay", "{}"), AssistantMessage::text("It is paid.")]);
    let approvals = Approvals::new();
    let runtime =
        Harness::new(script).shared_tool(pay()).approver(approvals.clone()).build_runtime().unwrap();
    let thread = runtime.thread("till");
    let mut events = thread.events(StartAt::Live);
    thread.execute(UserMessage::text("pay"), DeliveryMode::default()).unwrap();
    loop {
        let changed = approvals.changed();
        if !approvals.held(thread.id()).is_empty() {
            break;
        }
        changed.await;
    }
    let (id, digest) = approvals.held(thread.id()).first().map(|held| (held.id(), held.digest())).unwrap();
    let error = approvals.decide(thread.id(), &id, &"another".into(), Decision::Granted).unwrap_err();
    assert_eq!(error.kind(), "runtime.other_call");
    approvals.decide(thread.id(), &id, &digest, Decision::Granted).unwrap();
    assert_eq!(thread.response().await.unwrap().answer(), "It is paid.");
    approvals.decide(thread.id(), &id, &digest, Decision::Granted).expect("a repeat is no other decision");
    let error = approvals.decide(thread.id(), &id, &digest, Decision::Later).unwrap_err();
    assert_eq!(error.kind(), "runtime.decided");
    let error = approvals.decide(thread.id(), &"apr-1".into(), &digest, Decision::Granted).unwrap_err();
    assert_eq!(error.to_string(), "approval `apr-1` of thread `till` is not pending");
    runtime.shutdown().await;
    let mut told = Vec::new();
    while let Some(seen) = events.next().await {
        if let harness::runtime::StreamItem::Event { event: ThreadEvent::Event(event), .. } = seen {
            told.push(event.kind.name());
        }
    }
    assert!(told.contains(&"approval_requested") && told.contains(&"approval_decided"), "{told:?}");
}

#[tokio::test]
async fn threads_come_back_from_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = SessionStore::new(folder.path().join("sessions"));
    let runtime = |script| Harness::new(script).sessions(sessions.clone()).build_runtime().unwrap();
    assert_eq!(sessions.list().unwrap(), []);

    let first = runtime(Script::new([AssistantMessage::text("Hello, Ada.")]));
    first.thread("a/b").prompt("I am Ada").await.unwrap();
    first.shutdown().await;

    let script = Script::new([AssistantMessage::text("You are Ada.")]);
    let second = runtime(script.clone());
    second.thread("a/b").prompt("Who am I?").await.unwrap();
    assert_eq!(script.seen(), ["main:  | user I am Ada | assistant Hello, Ada. | user Who am I?"]);
    let listed = sessions.list().unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|stored| (stored.thread.as_str(), stored.title.as_deref(), stored.messages))
        .collect();
    assert_eq!(shown, [("a/b", Some("I am Ada"), 4)]);
}

/// Runs one prompt of the thread `a` in a process with these answers; the modes, what its model was shown, and the runtime.
async fn process(folder: &Path, answers: Vec<AssistantMessage>) -> (Modes, String, Runtime) {
    let script = Script::new(answers);
    let (modes, clock) = (Modes::plan_and_execute().model_may_set(), Arc::new(SystemClock::new()));
    let list = WorkTools::new(Keep::Thread, clock);
    let tools = list.clone().into_list();
    let builder = Harness::new(script.clone()).modes(modes.clone()).work_tools(list);
    let builder = tools.tools().iter().cloned().fold(builder, Builder::shared_tool);
    let runtime = builder.sessions(SessionStore::new(folder)).build_runtime().unwrap();
    runtime.thread("a").prompt("go on").await.unwrap();
    (modes, script.seen().last().cloned().unwrap_or_default(), runtime)
}

#[tokio::test]
async fn a_thread_has_its_mode_and_its_list_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let done = || AssistantMessage::text("done");
    let (modes, _, runtime) = process(
        folder.path(),
        vec![
            call("c1", "work_item_add", r#"{"title":"Pay the bill"}"#),
            call("c2", "mode_set", r#"{"mode":"execute"}"#),
            done(),
        ],
    )
    .await;
    assert_eq!(&*modes.of(Some(&"a".into())).current().name, "execute");
    drop(runtime);
    let (modes, shown, runtime) =
        process(folder.path(), vec![call("c3", "work_item_list", "{}"), done(), done()]).await;
    assert_eq!(&*modes.of(Some(&"a".into())).current().name, "execute");
    assert!(shown.contains("Pay the bill"), "{shown}");
    assert_eq!(&*modes.of(Some(&"b".into())).current().name, "plan", "another thread has its own");
    // What the host changes between two runs stays when the thread is unloaded, and is stored with the next run.
    modes.of(Some(&"a".into())).set("plan").unwrap();
    assert!(runtime.thread("a").unload());
    assert_eq!(runtime.thread("a").messages().await.unwrap().iter().count(), 11);
    assert_eq!(&*modes.of(Some(&"a".into())).current().name, "plan");
    runtime.thread("a").prompt("plan").await.unwrap();
    drop(runtime);
    let stored = || {
        let lines = std::fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
        lines.matches(r#""type":"state""#).count()
    };
    let before = stored();
    let (modes, shown, _runtime) = process(folder.path(), vec![done()]).await;
    assert_eq!(&*modes.of(Some(&"a".into())).current().name, "plan");
    assert_eq!(shown.matches("The mode is `plan` from now on.").count(), 2, "the model knows it: {shown}");
    assert_eq!(stored(), before, "a state is stored when it changes");
}

#[tokio::test]
async fn fault_33_a_session_of_another_descriptor_is_continued_only_by_choice() {
    let folder = tempfile::tempdir().unwrap();
    let builder = |who: &str, answer: &str| {
        let text = DESK.replace("To {{context.user.name}}", who);
        let graph = BoundGraph::bind(&load_text(&text).unwrap(), Vec::<(String, _)>::new()).unwrap();
        Harness::new(Script::new([AssistantMessage::text(answer)]))
            .graph(graph)
            .sessions(SessionStore::new(folder.path()))
    };
    let threads = |builder: harness::Builder| builder.build_runtime().unwrap();
    let first = threads(builder("Desk", "Hello."));
    first.thread("a").prompt("hello").await.unwrap();
    first.shutdown().await;

    for other in [
        builder("Robber", "Hands up!"),
        Harness::new(Script::new([])).sessions(SessionStore::new(folder.path())),
    ] {
        let other = threads(other);
        let refused = other.thread("a").prompt("the keys?").await.unwrap_err();
        assert_eq!(refused.kind(), "session.other_descriptor", "{refused}");
        assert_eq!(refused.class(), harness::runtime::ErrorClass::Conflict);
        assert_eq!(other.thread("a").messages().await.unwrap().iter().count(), 2, "reading is no continuing");
        other.shutdown().await;
    }

    let same = threads(builder("Desk", "Bye."));
    same.thread("a").prompt("bye").await.unwrap();
    same.shutdown().await;
    let meant = threads(builder("Other desk", "Welcome.").any_descriptor());
    meant.thread("a").prompt("good day").await.unwrap();
}

#[tokio::test]
async fn fault_37_empty_prompts_continue_a_thread_without_an_empty_message() {
    let script = Script::new([call("c1", "pay", "{}"), AssistantMessage::text("It is paid.")]);
    let approvals = Approvals::new();
    let runtime =
        Harness::new(script.clone()).shared_tool(pay()).approver(approvals.clone()).build_runtime().unwrap();
    let thread = runtime.thread("till");
    let error = thread.prompt("").await.unwrap_err();
    assert_eq!(error.kind(), "runtime.empty_transcript");
    for queued in [thread.steer(UserMessage::text(" ")), thread.follow_up(UserMessage::text(""))] {
        assert_eq!(queued.unwrap_err().kind(), "runtime.empty_message");
    }
    // Parked, it goes on with an empty prompt, and no message is added.
    let decided = async {
        for decision in [Decision::Later, Decision::Granted] {
            let held = loop {
                let changed = approvals.changed();
                if let Some(held) = approvals.held(thread.id()).pop() {
                    break held;
                }
                changed.await;
            };
            approvals.decide(thread.id(), &held.id(), &held.digest(), decision).unwrap();
        }
    };
    let prompted = async {
        thread.prompt("pay").await.unwrap();
        thread.prompt("").await.unwrap()
    };
    let (report, ()) = tokio::join!(prompted, decided);
    assert_eq!(report.answer(), "It is paid.");
    let users = report
        .transcript
        .iter()
        .filter(|message| matches!(&***message, harness::core::message::Message::User(_)));
    assert_eq!((report.transcript.len(), users.count()), (4, 1));
    let again = thread.prompt("").await.unwrap_err();
    assert_eq!(again.kind(), "runtime.nothing_to_resume");
    assert_eq!(script.seen().len(), 2, "nothing was asked again");
    runtime.shutdown().await;
}

#[tokio::test]
async fn fault_37_awaiting_approval_is_the_status_of_a_thread_that_waits() {
    let script = Script::new([call("c1", "pay", "{}"), AssistantMessage::text("It is paid.")]);
    let approvals = Approvals::new();
    let runtime =
        Harness::new(script).shared_tool(pay()).approver(approvals.clone()).build_runtime().unwrap();
    let thread = runtime.thread("till");
    thread.execute(UserMessage::text("pay"), DeliveryMode::default()).unwrap();
    let held = loop {
        let changed = approvals.changed();
        if let Some(held) = approvals.held(thread.id()).pop() {
            break held;
        }
        changed.await;
    };
    let harness::runtime::Status::AwaitingApproval { run, .. } = thread.status() else {
        panic!("{:?}", thread.status());
    };
    assert_eq!(Some(run), held.origin.run);
    assert_eq!(thread.snapshot().await.unwrap().status, thread.status());
    approvals.decide(thread.id(), &held.id(), &held.digest(), Decision::Granted).unwrap();
    assert_eq!(thread.response().await.unwrap().answer(), "It is paid.");
    runtime.shutdown().await;
}
