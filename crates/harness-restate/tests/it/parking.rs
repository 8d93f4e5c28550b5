//! Sub-agents that wait for days.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::core::machine::CallDecision;
use harness::core::message::ApprovalRequest;
use harness::core::port::{Clock as _, Decision};
use harness::core::tool::{ToolCx, ToolOutcome, Toolbox, tool_fn};
use harness::core::{Fault, Json, Millis, ThreadId, Time};
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{
    Agent, AgentHost, Begin, ControlAsk, HostAsk, SimEngine, ThreadAsk, ThreadReply, ThreadSend, ThreadState,
    ThreadStatus, fold,
};

use super::world::{Act, Host, PROMPT, Script, calls, client, say, tasks, text, thread};

/// So many days, and the time after them.
fn days(days: u64) -> Millis {
    Millis(days * 24 * 3_600_000)
}

fn after(number: u64) -> Time {
    Time(0).after(days(number))
}

/// A sub-agent that needs a signature.
fn script(child: Script) -> Script {
    Script {
        child: Some(Box::new(child)),
        answers: vec![tasks(&["c-task"]), text("Done.")],
        said: vec!["Order tea."],
        ..Script::default()
    }
}

fn signs(answers: &[&[&str]], acts: Vec<(usize, Act)>) -> Script {
    let answers = answers.iter().map(|names| calls(names)).chain([text("Signed.")]).collect();
    script(Script { answers, acts, ..Script::default() })
}

/// An engine whose thread got its first message.
fn engine(script: &Script) -> (SimEngine, Arc<Host>) {
    let engine = SimEngine::new(SimFaults::default());
    let clock = Arc::new(engine.clock());
    let host = Arc::new(Host::new(script, clock, client(engine.client(), engine.clock())));
    engine.client().send("first", Time(0), &thread(), say("first", "Order tea.", PROMPT));
    (engine, host)
}

fn status(engine: &SimEngine, thread: &str) -> ThreadStatus {
    engine.thread(&thread.into()).unwrap().status().clone()
}

/// The results of the calls of a thread.
fn results(engine: &SimEngine, thread: &ThreadId) -> Vec<String> {
    let folded = fold(&engine.log(thread));
    let results = folded.messages().filter(|message| message.as_tool_result().is_some());
    results.map(|result| result.joined_text()).collect()
}

#[test]
fn a_parked_sub_agent_and_its_caller_show_what_they_wait_for() {
    let (engine, host) = engine(&signs(&[&["sign"]], Vec::new()));
    let engine = engine.with_stop(after(1));
    engine.run(&host);
    let parked = |run: &str| ThreadStatus::Parked(run.into());
    assert_eq!(status(&engine, "t1"), parked("t1-1"));
    assert_eq!(status(&engine, "t1/c-task"), parked("t1/t1/1/0/c-task"));
    let state = engine.thread(&thread()).unwrap();
    let waits = state.approvals().map(|held| {
        let proposed = &held.proposed;
        let thread = proposed.origin.thread.as_ref().unwrap();
        format!("{} in {thread}: {}", proposed.call.name, proposed.reason)
    });
    assert_eq!(waits.collect::<Vec<_>>(), ["sign in t1/c-task: needs a signature"]);
    let end = state.last().unwrap().as_ref().unwrap();
    let requests = serde_json::to_string(&end.stop.evidence).unwrap();
    assert!(requests.contains(r#""kind":"sign","summary":"needs a signature""#), "{requests}");
}

#[test]
fn a_decision_that_is_put_off_parks_a_sub_agent_at_once() {
    let (engine, host) = engine(&signs(&[&["sign-1", "sign-2"]], Vec::new()));
    let later = |call: &str| ThreadAsk::Decide(CallDecision::new(call, Decision::Later));
    engine.client().send("1", Time(5_000), &thread(), later("c-sign-1"));
    engine.client().send("2", Time(10_000), &thread(), later("c-sign-2"));
    // It is put off already.
    engine.client().send("3", Time(15_000), &thread(), later("c-sign-1"));
    let engine = engine.with_stop(Time(20_000));
    engine.run(&host);
    assert_eq!(engine.client().reply("3"), Some(ThreadReply::Accepted(None)));
    assert_eq!(status(&engine, "t1"), ThreadStatus::Parked("t1-1".into()));
    let state = engine.thread(&thread()).unwrap();
    assert_eq!(
        state.approvals().map(|held| held.call().to_string()).collect::<Vec<_>>(),
        ["c-sign-1", "c-sign-2"]
    );
}

#[test]
fn a_sub_agent_that_waits_twice_has_its_time_each_time() {
    let grant = Act::Grant("c-sign-1", days(5));
    let (engine, host) = engine(&signs(&[&["sign-1"], &["sign-2"]], vec![(0, grant)]));
    engine.run(&host);
    assert_eq!(status(&engine, "t1"), ThreadStatus::Idle);
    let child = results(&engine, &"t1/c-task".into());
    assert_eq!(child, ["sign tea", "Denied: nobody decided in time"]);
    let resumed = engine.thread(&thread()).unwrap().since();
    assert!((after(12)..after(13)).contains(&resumed));
}

#[test]
fn calls_of_a_parked_sub_agent_may_be_decided_one_after_the_other() {
    let grant = |call, number| (0, Act::Grant(call, days(number)));
    let acts = vec![grant("c-sign-1", 2), grant("c-sign-2", 4)];
    let (engine, host) = engine(&signs(&[&["sign-1", "sign-2"]], acts));
    engine.run(&host);
    assert_eq!(results(&engine, &"t1/c-task".into()), ["sign tea", "sign tea"]);
    assert!(results(&engine, &thread())[0].contains("Signed."));
}

#[test]
fn an_abort_ends_a_parked_run_and_what_waits_inside_of_it() {
    let own = Script {
        answers: vec![calls(&["look", "sign"]), text("Signed.")],
        said: vec!["Order tea."],
        ..Script::default()
    };
    let not_run = "This call did not run: the turn that asked for it ended before the call started.";
    let cut_off =
        "This call was cut off before it answered. It may have taken effect: check before it is repeated.";
    let task = signs(&[&["sign"]], Vec::new());
    for (script, expected) in [(own, vec!["look tea", not_run]), (task, vec![cut_off])] {
        let (engine, host) = engine(&script);
        let abort = |reason: &str| ThreadAsk::Abort { reason: Some(reason.into()) };
        engine.client().send("1", after(1), &thread(), abort("no tea"));
        engine.client().send("2", after(2), &thread(), abort("again"));
        let report = engine.run(&host);
        assert_eq!((report.stuck, report.violations), (Vec::new(), Vec::new()));
        let replies = ["1", "2"].map(|name| engine.client().reply(name).unwrap());
        assert_eq!(replies, [ThreadReply::Accepted(Some("t1-2".into())), ThreadReply::Accepted(None)]);
        let state = engine.thread(&thread()).unwrap();
        let end = state.last().unwrap().as_ref().unwrap();
        assert_eq!((end.reason().to_string(), end.outcome().as_str()), ("cancelled".to_owned(), "failed"));
        assert_eq!((state.status(), state.approvals().count()), (&ThreadStatus::Idle, 0));
        assert_eq!(results(&engine, &thread()), expected);
        let ledger = host.ledger.lock();
        assert!(!ledger.iter().any(|line| line.contains("sign")), "{ledger:?}");
    }
}

#[test]
fn an_abort_that_comes_while_a_run_parks_ends_it() {
    let script = Script { answers: vec![calls(&["sign"])], said: vec!["Order tea."], ..Script::default() };
    let (engine, host) = engine(&script);
    let engine = engine.with_stop(after(1));
    engine.run(&host);
    let parked = engine.thread(&thread()).unwrap().last().unwrap().clone();
    let ended = ControlAsk::Ended {
        run: "t1-1".into(),
        end: parked,
        at: Time(0),
        injected: Vec::new(),
        log: 7,
        state: None,
        states: None,
    };
    let abort = ThreadAsk::Abort { reason: Some("no tea".into()) };
    let mut state = ThreadState::new(thread(), None);
    for ask in [say("first", "Order tea.", PROMPT), abort] {
        state.handle(ask, Time(0), None);
    }
    let sent = state.handle(ThreadAsk::Run(ended), Time(0), None).1;
    let started = sent
        .into_iter()
        .find_map(|send| if let ThreadSend::Drive(input) = send { Some(input) } else { None });
    let started = started.unwrap();
    assert_eq!((started.run().as_str(), started.stop.as_deref()), ("t1-2", Some("no tea")));
    assert!(matches!(started.begin, Begin::Resumed { .. }), "{:?}", started.begin);
}

#[test]
fn a_call_whose_parked_sub_agent_is_forgotten_or_stopped_has_an_error() {
    let run = "t1/t1/1/0/c-task";
    for (name, ask) in [("forget", ThreadAsk::Forget), ("stop", ThreadAsk::StopRun(run.into()))] {
        let (engine, host) = engine(&signs(&[&["sign"]], Vec::new()));
        engine.client().send(name, after(1), &"t1/c-task".into(), ask);
        let report = engine.run(&host);
        assert_eq!((report.stuck, report.violations), (Vec::new(), Vec::new()));
        assert_eq!(status(&engine, "t1"), ThreadStatus::Idle, "{name}");
        let result = results(&engine, &thread()).remove(0);
        let why = format!(
            "run `{run}` of thread `t1/c-task` was stopped while it waited for approval; what it did may have taken effect"
        );
        assert!(result.contains(&why), "{name}: {result}");
        assert!(engine.thread(&thread()).unwrap().since() < after(2), "{name}");
        let ledger = host.ledger.lock();
        assert!(!ledger.iter().any(|line| line.contains("sign")), "{name}: {ledger:?}");
    }
}

/// An agent whose tool `order` waits for an approval of its own.
struct Asking(Host, Arc<AtomicBool>);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {}

impl AgentHost for Asking {
    async fn agent(&self, _: HostAsk<'_>) -> Result<Agent, Fault> {
        let mut agent = self.0.parts();
        let has_asked = Arc::clone(&self.1);
        let order = tool_fn("order", "orders", move |_: Order, _: ToolCx| {
            let has_asked = has_asked.swap(true, Ordering::Relaxed);
            async move {
                let outcome = ToolOutcome::text("ordered");
                if has_asked {
                    return outcome;
                }
                outcome.waiting_for([ApprovalRequest::new("o-1", "order", "Order tea for 5?")])
            }
        });
        agent.ports.tools = Arc::new(Toolbox::new([Arc::new(order) as _]));
        Ok(agent)
    }
}

#[test]
fn a_tool_that_waits_for_an_approval_of_its_own_is_performed_again() {
    for (decision, result) in [
        (CallDecision::granted("c-order"), "ordered"),
        (CallDecision::denied("c-order", "too much"), "Denied: too much"),
    ] {
        let answers = vec![calls(&["order"]), text("Done.")];
        let script = Script { answers, said: vec!["Order tea."], ..Script::default() };
        let engine = SimEngine::new(SimFaults::default());
        let host = Host::new(&script, Arc::new(engine.clock()), client(engine.client(), engine.clock()));
        let host = Arc::new(Asking(host, Arc::default()));
        engine.client().send("first", Time(0), &thread(), say("first", "Order tea.", PROMPT));
        let edit = CallDecision::edited("c-order", Json::empty_object());
        engine.client().send("edit", after(1), &thread(), ThreadAsk::Decide(edit));
        engine.client().send("decide", after(2), &thread(), ThreadAsk::Decide(decision));
        assert_eq!(engine.run(&host).stuck, [""; 0]);
        let refused = "not_editable: `c-order` can only be granted or denied".to_owned();
        assert_eq!(engine.client().reply("edit"), Some(ThreadReply::Refused(refused)));
        assert_eq!(results(&engine, &thread()), [result]);
        assert!(engine.clock().now() >= after(2));
    }
}

#[test]
fn a_call_may_be_decided_as_an_earlier_run_showed_it() {
    let answers = vec![calls(&["sign-1", "sign-2"]), text("Signed once.")];
    let (engine, host) = engine(&Script { answers, said: vec!["Order tea."], ..Script::default() });
    let digest = |engine: &SimEngine, call: &str| {
        let state = engine.thread(&thread()).unwrap();
        let held: Vec<_> = state.approvals().cloned().collect();
        held.into_iter().find(|held| held.call().as_str() == call).unwrap().proposed.digest()
    };
    let engine = engine.with_stop(after(1));
    engine.run(&host);
    let [first, second] = ["c-sign-1", "c-sign-2"].map(|call| digest(&engine, call));
    let decide = |decided: CallDecision, digest| ThreadAsk::Decide(decided.having_seen(digest));
    engine.client().send("1", after(2), &thread(), decide(CallDecision::granted("c-sign-1"), first.clone()));
    // The run that goes on with the first decision leaves the second call parked, as it was shown.
    let engine = engine.with_stop(after(2).after(Millis(20_000)));
    engine.run(&host);
    assert_eq!(status(&engine, "t1"), ThreadStatus::Parked("t1-2".into()));
    let at = after(2).after(Millis(30_000));
    engine.client().send("2", at, &thread(), decide(CallDecision::denied("c-sign-2", "no"), first));
    engine.client().send("3", at, &thread(), decide(CallDecision::denied("c-sign-2", "no"), second));
    let engine = engine.with_stop(after(3));
    engine.run(&host);
    let Some(ThreadReply::Refused(why)) = engine.client().reply("2") else { panic!("another call") };
    assert!(why.starts_with("other_call: "), "{why}");
    assert_eq!(engine.client().reply("3"), Some(ThreadReply::Accepted(Some("t1-3".into()))));
    assert_eq!(results(&engine, &thread()), ["sign tea", "Denied: no"]);
}

#[test]
fn a_denial_holds_while_another_call_is_parked() {
    let answers = vec![calls(&["sign-1", "sign-2"]), text("Signed once.")];
    let (engine, host) = engine(&Script { answers, said: vec!["Order tea."], ..Script::default() });
    // The first call is parked after a minute; the run waits for the second one.
    engine.client().send(
        "1",
        Time(70_000),
        &thread(),
        ThreadAsk::Decide(CallDecision::denied("c-sign-2", "no")),
    );
    let engine = engine.with_stop(after(1));
    engine.run(&host);
    assert_eq!(status(&engine, "t1"), ThreadStatus::Parked("t1-1".into()));
    let held = engine.thread(&thread()).unwrap();
    assert_eq!(held.approvals().map(|held| held.call().to_string()).collect::<Vec<_>>(), ["c-sign-1"]);
    engine.client().send("2", after(2), &thread(), ThreadAsk::Decide(CallDecision::granted("c-sign-1")));
    let engine = engine.with_stop(after(3));
    engine.run(&host);
    assert_eq!(status(&engine, "t1"), ThreadStatus::Idle);
    assert_eq!(results(&engine, &thread()), ["sign tea", "Denied: no"]);
}
