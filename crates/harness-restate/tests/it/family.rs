//! The rules of threads that work for calls of other threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::core::machine::CallDecision;
use harness::core::message::ToolCall;
use harness::core::port::ProposedCall;
use harness::core::tool::ToolDef;
use harness::core::{Json, Origin, ThreadId, Time};
use harness_restate::durable::{
    ControlAsk, ControlReply, Held, ThreadAsk, ThreadReply, ThreadSend, ThreadState, ThreadStatus,
};

use super::world::{PROMPT, say};

/// Threads that get what they tell each other at once.
#[derive(Default)]
struct Threads(BTreeMap<ThreadId, ThreadState>);

impl Threads {
    /// A thread `t1` with a run.
    fn at_work() -> Self {
        let mut threads = Self::default();
        threads.ask("t1", say("m1", "Order tea.", PROMPT));
        threads
    }

    fn ask(&mut self, thread: &str, ask: ThreadAsk) -> ThreadReply {
        let state = self.0.entry(thread.into()).or_insert_with(|| ThreadState::new(thread.into(), None));
        let (reply, sends) = state.handle(ask, Time(0), None);
        for send in sends {
            if let ThreadSend::Tell(other, ask) = send {
                self.ask(other.as_str(), *ask);
            }
        }
        reply
    }

    /// Says that a call hands its work to a run of a child, and begins that.
    fn delegate(&mut self, parent: (&str, &str), child: &str, run: &str) -> ControlReply {
        let begins = ControlAsk::Delegate { run: parent.1.into(), child: child.into(), begins: run.into() };
        assert_eq!(self.ask(parent.0, ThreadAsk::Run(begins)), ThreadReply::Run(ControlReply::Noted));
        let mut origin = Origin::default();
        (origin.thread, origin.run) = (Some(child.into()), Some(run.into()));
        let (origin, parent, caller) = (Box::new(origin), parent.0.into(), parent.1.into());
        let begin = ControlAsk::BeginChild { origin, parent, caller, continues: false, at: Time(0) };
        let ThreadReply::Run(reply) = self.ask(child, ThreadAsk::Run(begin)) else { panic!("to the run") };
        reply
    }

    fn hold(&mut self, thread: &str, run: &str, calls: &[&str]) {
        let waiting = calls.iter().map(|call| {
            let call = Arc::new(ToolCall::new(*call, "pay", Json::empty_object()));
            let proposed = ProposedCall::new(call, ToolDef::new("pay", "Pays"), "main".into(), 1);
            Held { proposed, since: Time(0) }
        });
        let hold = ControlAsk::Hold { run: run.into(), calls: waiting.collect() };
        self.ask(thread, ThreadAsk::Run(hold));
    }

    fn end(&mut self, thread: &str, run: &str, log: u64) {
        let end = Err("stopped".to_owned());
        let (run, at, injected, state) = (run.into(), Time(0), Vec::new(), None);
        self.ask(
            thread,
            ThreadAsk::Run(ControlAsk::Ended { run, end, at, injected, log, state, states: None }),
        );
    }

    /// The calls of a thread that wait for a decision.
    fn approvals(&self, thread: &str) -> Vec<String> {
        self.0[&ThreadId::from(thread)].approvals().map(|held| held.call().to_string()).collect()
    }

    fn children(&self, thread: &str) -> Vec<String> {
        self.0[&ThreadId::from(thread)].children().map(ToString::to_string).collect()
    }

    fn state(&self, thread: &str) -> &ThreadState {
        &self.0[&ThreadId::from(thread)]
    }
}

#[test]
fn a_decision_goes_down_to_the_child_that_waits() {
    let mut threads = Threads::at_work();
    threads.delegate(("t1", "t1-1"), "t1/c", "r1");
    threads.delegate(("t1/c", "r1"), "t1/c/d", "r2");
    threads.hold("t1/c", "r1", &["a"]);
    threads.hold("t1/c/d", "r2", &["b", "c"]);
    assert_eq!(threads.approvals("t1"), ["a", "b", "c"]);
    let granted = |call: &str| ThreadAsk::Decide(CallDecision::granted(call));
    assert_eq!(threads.ask("t1", granted("c")), ThreadReply::Accepted(Some("t1-1".into())));
    assert_eq!(
        (threads.approvals("t1"), threads.approvals("t1/c/d")),
        (vec!["a".into(), "b".into()], vec!["b".into()])
    );
    // Decided in the child itself.
    threads.ask("t1/c", granted("a"));
    assert_eq!(threads.approvals("t1"), ["b"]);
    threads.end("t1/c/d", "r2", 5);
    assert_eq!((threads.approvals("t1"), threads.children("t1/c")), (Vec::new(), Vec::new()));
    let refused = "not_pending: call `b` does not wait for a decision".to_owned();
    assert_eq!(threads.ask("t1", granted("b")), ThreadReply::Refused(refused));
}

#[test]
fn an_own_call_comes_before_one_of_a_child_with_the_same_id() {
    let mut threads = Threads::at_work();
    threads.delegate(("t1", "t1-1"), "t1/c", "r1");
    threads.hold("t1/c", "r1", &["a"]);
    threads.hold("t1", "t1-1", &["a"]);
    threads.ask("t1", ThreadAsk::Decide(CallDecision::granted("a")));
    assert_eq!((threads.approvals("t1"), threads.approvals("t1/c")), (vec!["a".into()], vec!["a".into()]));
}

#[test]
fn a_child_takes_no_messages_and_starts_nothing() {
    let mut threads = Threads::at_work();
    threads.delegate(("t1", "t1-1"), "t1/c", "r1");
    let refused = "child: thread `t1/c` works for a call and takes no messages; send them to `t1`".to_owned();
    assert_eq!(threads.ask("t1/c", say("m2", "More.", PROMPT)), ThreadReply::Refused(refused));
    threads.end("t1/c", "r1", 5);
    assert_eq!(threads.state("t1/c").status(), &ThreadStatus::Idle);
    assert_eq!(threads.state("t1/c").last_run(), Some("r1".into()));
}

#[test]
fn a_child_that_is_stopped_before_it_begins_is_stopped_at_once() {
    let mut threads = Threads::at_work();
    threads.ask("t1/c", ThreadAsk::StopRun("r1".into()));
    threads.delegate(("t1", "t1-1"), "t1/c", "r1");
    assert!(threads.state("t1/c").is_stopping());
    threads.end("t1/c", "r1", 5);
    // Another run of that thread is not.
    threads.ask("t1/c", ThreadAsk::StopRun("r1".into()));
    threads.delegate(("t1", "t1-1"), "t1/c", "r2");
    assert!(!threads.state("t1/c").is_stopping());
    threads.ask("t1/c", ThreadAsk::StopRun("r2".into()));
    assert!(threads.state("t1/c").is_stopping());
}

#[test]
fn a_call_with_the_id_of_an_earlier_one_has_a_conversation_of_its_own() {
    let mut threads = Threads::at_work();
    let began = |log| ControlReply::Began { log, spent: None, parked: None, states: None };
    assert_eq!(threads.delegate(("t1", "t1-1"), "t1/c", "r1"), began(0));
    // Asked twice: once.
    assert_eq!(threads.delegate(("t1", "t1-1"), "t1/c", "r1"), began(0));
    let taken = ControlReply::Refused("thread `t1/c` is not free for run `r2`".to_owned());
    assert_eq!(threads.delegate(("t1", "t1-1"), "t1/c", "r2"), taken);
    threads.end("t1/c", "r1", 5);
    assert_eq!(threads.delegate(("t1", "t1-1"), "t1/c", "r3"), began(5));
    assert_eq!((threads.state("t1/c").first(), threads.children("t1")), (5, vec!["t1/c".to_owned()]));
}

#[test]
fn a_thread_keeps_64_children_and_forgets_them_with_itself() {
    let mut threads = Threads::at_work();
    let names: Vec<_> = (0..66).map(|at| (format!("t1/c{at}"), format!("r{at}"))).collect();
    for (child, run) in &names {
        threads.delegate(("t1", "t1-1"), child, run);
        if child != "t1/c0" {
            threads.end(child, run, 5);
        }
    }
    // The first is at work, so the next two made room.
    let forgotten = |threads: &Threads| {
        let is_forgetting = |(child, _): &&(String, String)| threads.state(child).is_forgetting();
        names.iter().filter(is_forgetting).map(|(child, _)| child.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (forgotten(&threads), threads.children("t1")),
        (vec!["t1/c1".into(), "t1/c2".into()], vec!["t1/c0".to_owned()])
    );
    threads.ask("t1", ThreadAsk::Forget);
    assert_eq!(forgotten(&threads).len(), 2);
    threads.end("t1", "t1-1", 9);
    assert_eq!((forgotten(&threads).len(), threads.state("t1/c0").is_stopping()), (66, true));
}
