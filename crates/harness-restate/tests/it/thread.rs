//! The rules of a thread's queue and decisions.

use std::sync::Arc;

use harness::core::machine::{CallDecision, Record};
use harness::core::message::{Message, ToolCall};
use harness::core::port::{Decision, DrainPoint, ProposedCall};
use harness::core::tool::ToolDef;
use harness::core::{Json, Time};
use harness::runtime::DeliveryRules;
use harness_restate::durable::{
    Begin, ControlAsk, ControlReply, Held, LogEntry, LogItem, RunOptions, ThreadAsk, ThreadReply, ThreadSend,
    ThreadState, ThreadStatus, delivered,
};

use super::world::{FOLLOW_UP, INTERRUPT, PROMPT, SECRET, STEER, Way, redactor, say};

fn deliver(entry: &str, way: Way) -> ThreadAsk {
    say(entry, entry, way)
}

/// Gives requests to a new thread. The replies, and what it sent, as short lines.
fn check(asks: &[ThreadAsk], expected: &[&str]) {
    let mut state = ThreadState::new("t1".into(), None);
    let mut lines = Vec::new();
    for ask in asks {
        let (reply, sends) = state.handle(ask.clone(), Time(0), None);
        let mut line = match reply {
            ThreadReply::Accepted(run) => {
                format!("accepted {}", run.map_or_else(String::new, |run| run.to_string()))
            }
            ThreadReply::Refused(why) => format!("refused {why}"),
            ThreadReply::Run(reply) => format!("{reply:?}"),
        };
        for send in sends {
            let sent = match send {
                ThreadSend::Drive(input) => match input.begin {
                    Begin::Messages { prompt, .. } => {
                        let said = prompt.first().map(|message| message.joined_text());
                        format!("; drive {}", said.as_deref().unwrap_or("without a message"))
                    }
                    Begin::Resumed { .. } | Begin::Saved { .. } | Begin::Parked => "; drive".to_owned(),
                    Begin::Compact { .. } => "; compact".to_owned(),
                },
                ThreadSend::Ring(run) => format!("; ring {run}"),
                ThreadSend::Tell(other, _) => format!("; tell {other}"),
                ThreadSend::Forget { before } => format!("; forget {before}"),
                ThreadSend::Later(at, _) => format!("; later {}", at.since(Time(0)).0),
            };
            line.push_str(&sent);
        }
        lines.push(line.trim_end().to_owned());
    }
    assert_eq!(lines, expected);
}

#[test]
fn a_message_that_is_sent_again_counts_once() {
    check(
        &[deliver("a", PROMPT), deliver("a", PROMPT), deliver("b", PROMPT)],
        &["accepted t1-1; drive a", "accepted t1-1", "accepted t1-1"],
    );
}

#[test]
fn steering_and_follow_ups_do_not_wake_an_idle_thread() {
    check(
        &[deliver("a", STEER), deliver("b", FOLLOW_UP), deliver("c", PROMPT)],
        &["accepted", "accepted", "accepted t1-1; drive b"],
    );
}

fn start(entry: &str, said: &[&str]) -> ThreadAsk {
    let messages = said.iter().map(|said| Arc::new(Message::user(*said))).collect();
    ThreadAsk::Start { entry: entry.into(), messages, resume: None, options: RunOptions::default() }
}

#[test]
fn a_prompt_of_an_idle_thread_is_before_what_waits() {
    check(
        &[deliver("a", FOLLOW_UP), start("b", &["x", "y"]), start("b", &["x", "y"]), start("c", &["z"])],
        &[
            "accepted",
            "accepted t1-1; drive x",
            "accepted t1-1",
            "refused busy: run `t1-1` of thread `t1` is at work",
        ],
    );
    // What the transcript does not have waits again, behind the rest.
    check(
        &[start("b", &["x", "y"]), settle("t1-1", &["b"]), deliver("c", PROMPT), settle("t1-2", &["b/1"])],
        &["accepted t1-1; drive x", "accepted", "accepted t1-2; drive y", "accepted"],
    );
    let none = "refused no_message: a run begins with at least one message; `Continue` begins without one";
    check(&[start("b", &[])], &[none]);
}

#[test]
fn a_thread_without_messages_has_nothing_to_continue() {
    let go_on = ThreadAsk::Continue { options: RunOptions::default() };
    check(&[go_on], &["refused empty_transcript: thread `t1` has no messages"]);
}

#[test]
fn an_abort_has_the_reason_of_the_caller() {
    let mut state = ThreadState::new("t1".into(), None);
    let abort = ThreadAsk::Abort { reason: Some("no tea".into()) };
    let take = ControlAsk::Take {
        run: "t1-1".into(),
        number: 0,
        point: None,
        injected: vec![],
        delivery: DeliveryRules::default(),
    };
    for ask in [deliver("a", PROMPT), abort] {
        state.handle(ask, Time(0), None);
    }
    let (reply, _) = state.handle(ThreadAsk::Run(take), Time(0), None);
    let ThreadReply::Run(ControlReply::Taken { stop, .. }) = reply else { panic!("{reply:?}") };
    assert_eq!(stop.as_deref(), Some("no tea"));
}

fn settle(run: &str, injected: &[&str]) -> ThreadAsk {
    let injected = injected.iter().map(|entry| (*entry).into()).collect();
    ThreadAsk::Settle { run: run.into(), why: "cut_off: lost".to_owned(), injected, log: 7 }
}

#[test]
fn a_settled_run_leaves_its_thread_free() {
    check(
        &[
            deliver("a", PROMPT),
            deliver("b", PROMPT),
            settle("t1-9", &["a"]),
            settle("t1-1", &["a"]),
            settle("t1-1", &["a"]),
            deliver("c", PROMPT),
        ],
        &[
            "accepted t1-1; drive a",
            "accepted t1-1",
            "refused not_running: run `t1-9` is not the run of this thread",
            "accepted",
            "refused not_running: run `t1-1` is not the run of this thread",
            "accepted t1-2; drive b",
        ],
    );
    // A message that is not in the transcript is delivered again.
    check(
        &[deliver("a", PROMPT), settle("t1-1", &[]), deliver("b", PROMPT)],
        &["accepted t1-1; drive a", "accepted", "accepted t1-2; drive a"],
    );
}

/// The messages that a thread with the run of message `a` has delivered, and the end of its settled run.
fn settled(entries: &[LogItem]) -> Vec<String> {
    let mut state = ThreadState::new("t1".into(), None);
    for ask in [deliver("a", PROMPT), deliver("b", PROMPT), deliver("c", STEER)] {
        state.handle(ask, Time(0), None);
    }
    let take = ControlAsk::Take {
        run: "t1-1".into(),
        number: 0,
        point: Some(DrainPoint::Round),
        injected: Vec::new(),
        delivery: DeliveryRules::default(),
    };
    state.handle(ThreadAsk::Run(take), Time(0), None);
    let entries: Vec<_> = (0..).zip(entries).map(|(seq, item)| LogEntry::new(seq, item.clone())).collect();
    delivered(&state, &entries).iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_in_the_transcript_of_a_settled_run_is_not_delivered_again() {
    let record = |text: &str| {
        let messages = vec![Arc::new(Message::user(text))];
        LogItem::Record(Box::new(Record::Messages { from: 0, messages }))
    };
    assert_eq!(settled(&[]), Vec::<String>::new());
    // A check may have changed the prompt.
    assert_eq!(settled(&[record("A")]), ["a"]);
    assert_eq!(settled(&[record("a"), record("c")]), ["a", "c"]);
}

#[test]
fn an_interruption_rings_the_run_and_goes_first() {
    check(
        &[deliver("a", PROMPT), deliver("b", PROMPT), deliver("c", INTERRUPT)],
        &["accepted t1-1; drive a", "accepted t1-1", "accepted t1-1; ring t1-1"],
    );
}

#[test]
fn what_waits_can_be_changed_moved_and_removed() {
    let edit = |entry: &str| ThreadAsk::Edit { entry: entry.into(), message: Arc::new(Message::user("new")) };
    check(
        &[
            deliver("a", FOLLOW_UP),
            deliver("b", FOLLOW_UP),
            edit("b"),
            ThreadAsk::Reorder { entry: "b".into(), place: 0 },
            ThreadAsk::Cancel { entry: "a".into() },
            ThreadAsk::Cancel { entry: "a".into() },
            deliver("c", PROMPT),
            edit("b"),
        ],
        &[
            "accepted",
            "accepted",
            "accepted",
            "accepted",
            "accepted",
            "refused not_waiting: message `a` does not wait; a run may have taken it",
            "accepted t1-1; drive new",
            "refused not_waiting: message `b` does not wait; a run may have taken it",
        ],
    );
}

#[test]
fn a_run_has_the_options_of_the_message_that_begins_it() {
    let mut state = ThreadState::new("t1".into(), Some("v1".into()));
    let ThreadAsk::Deliver { entry, message, mode, wakes, .. } = deliver("a", PROMPT) else { panic!() };
    let mut options = RunOptions { user: Some("ann".into()), ..RunOptions::default() };
    (options.agent, options.allowed_tools) = (Some("clerk".into()), Some(Arc::from(["look".into()])));
    let ask = ThreadAsk::Deliver { entry, message, mode, wakes, options };
    let [ThreadSend::Drive(input)] = &*state.handle(ask, Time(7), None).1 else { panic!("one run begins") };
    let origin = &input.origin;
    let ids =
        (origin.run.as_ref().unwrap().as_str(), origin.user.as_deref(), origin.descriptor_hash.as_deref());
    assert_eq!((ids, input.at), (("t1-1", Some("ann"), Some("v1")), Time(7)));
    assert_eq!(origin.allowed_tools.as_deref(), Some(&["look".into()][..]));
    assert!(matches!(&input.begin, Begin::Messages { agent: Some(agent), .. } if agent.as_str() == "clerk"));
}

/// The user, the agent and the number of tools of the run that a message begins after these requests.
fn begun(asks: Vec<ThreadAsk>, options: RunOptions) -> (Option<String>, Option<String>, Option<usize>) {
    let mut state = ThreadState::new("t1".into(), None);
    for ask in asks {
        assert_eq!(state.handle(ask, Time(0), None), (ThreadReply::Accepted(None), Vec::new()));
    }
    let ThreadAsk::Deliver { entry, message, mode, wakes, .. } = deliver("a", PROMPT) else { panic!() };
    let ask = ThreadAsk::Deliver { entry, message, mode, wakes, options };
    let [ThreadSend::Drive(input)] = &*state.handle(ask, Time(0), None).1 else { panic!("one run begins") };
    let Begin::Messages { agent, .. } = &input.begin else { panic!("with messages") };
    let tools = input.origin.allowed_tools.as_ref().map(|tools| tools.len());
    (input.origin.user.as_deref().map(str::to_owned), agent.as_ref().map(ToString::to_string), tools)
}

#[test]
fn a_thread_has_options_for_messages_without_any() {
    let none = RunOptions::default;
    let user = |name: &str| RunOptions { user: Some(name.into()), ..none() };
    let agent = |name: &str| RunOptions { agent: Some(name.into()), ..none() };
    let tools = RunOptions { allowed_tools: Some(Arc::from(["look".into()])), ..user("ann") };
    let configured = |options: &[RunOptions]| options.iter().cloned().map(ThreadAsk::Configure).collect();
    let own = |name: &str| Some(name.to_owned());
    assert_eq!(begun(configured(&[]), none()), (None, None, None));
    assert_eq!(begun(configured(std::slice::from_ref(&tools)), none()), (own("ann"), None, Some(1)));
    assert_eq!(begun(configured(std::slice::from_ref(&tools)), user("bob")), (own("bob"), None, Some(1)));
    // What is set replaces what was set, and the conversation stays with its agent.
    assert_eq!(begun(configured(&[agent("clerk"), tools]), none()), (own("ann"), own("clerk"), Some(1)));
    assert_eq!(begun(configured(&[agent("clerk"), user("ann")]), agent("cook")).1, own("cook"));
}

#[test]
fn options_are_bounded() {
    let metadata = Json::string(&"x".repeat(40_000));
    let options = RunOptions { metadata: Some(metadata), ..RunOptions::default() };
    check(
        &[ThreadAsk::Configure(options)],
        &["refused options_too_large: 40060 bytes of options, 32768 are permitted"],
    );
}

#[test]
fn only_a_new_thread_takes_a_history_and_only_an_idle_one_continues() {
    let seed = |bytes: usize| ThreadAsk::Seed { messages: vec![Arc::new(Message::user("x".repeat(bytes)))] };
    let go_on = || ThreadAsk::Continue { options: RunOptions::default() };
    check(
        &[seed(200_000), seed(10), seed(20), go_on(), go_on(), seed(10)],
        &[
            "refused history_too_large: 200055 bytes of history, 131072 are permitted",
            "accepted",
            "accepted",
            "accepted t1-1; drive without a message",
            "refused busy: run `t1-1` of thread `t1` is at work",
            "refused not_new: thread `t1` has a history already, which stays",
        ],
    );
}

#[test]
fn a_thread_compacts_what_it_stored_and_once_for_each_request() {
    let compact = |entry: &str| ThreadAsk::Compact { entry: entry.into(), instructions: None };
    let seed = ThreadAsk::Seed { messages: vec![Arc::new(Message::user("Order tea."))] };
    check(
        &[seed, compact("a")],
        &[
            "accepted",
            "refused not_stored: the first run of thread `t1` stores the history that it was given; compact after it",
        ],
    );
    check(
        &[compact("a"), compact("a"), compact("b"), deliver("c", INTERRUPT)],
        &[
            "accepted t1-compaction-1; compact",
            "accepted t1-compaction-1",
            "refused busy: run `t1-compaction-1` of thread `t1` is at work",
            "accepted t1-compaction-1",
        ],
    );
}

#[test]
fn only_calls_that_wait_can_be_decided() {
    check(
        &[ThreadAsk::Decide(CallDecision::granted("c1")), ThreadAsk::Abort { reason: None }],
        &["refused not_pending: call `c1` does not wait for a decision", "accepted"],
    );
}

#[test]
fn a_thread_that_forgets_stops_its_run_and_takes_no_requests() {
    let ended = ControlAsk::Ended {
        run: "t1-1".into(),
        end: Err("stopped".to_owned()),
        at: Time(0),
        injected: Vec::new(),
        log: 7,
        state: None,
        states: None,
    };
    let refused =
        "refused forgetting: the conversation of thread `t1` is being removed; try again in a moment";
    check(
        &[
            deliver("a", PROMPT),
            ThreadAsk::Forget,
            deliver("b", PROMPT),
            ThreadAsk::Run(ended),
            ThreadAsk::Forget,
            deliver("c", PROMPT),
            ThreadAsk::Forgotten { before: 7 },
            ThreadAsk::Forgotten { before: 7 },
            deliver("a", PROMPT),
        ],
        &[
            "accepted t1-1; drive a",
            "accepted t1-1; ring t1-1",
            refused,
            "Noted; forget 7",
            "accepted",
            refused,
            "accepted",
            "accepted",
            "accepted t1-2; drive a",
        ],
    );
}

#[test]
fn a_decision_may_be_repeated_and_not_changed() {
    let call = Arc::new(ToolCall::new("c1", "pay", Json::empty_object()));
    let proposed = ProposedCall::new(call, ToolDef::new("pay", "Pays"), "main".into(), 1);
    let digest = proposed.digest();
    let hold = ControlAsk::Hold { run: "t1-1".into(), calls: vec![Held { proposed, since: Time(0) }] };
    let asks = [
        deliver("a", PROMPT),
        ThreadAsk::Run(hold),
        ThreadAsk::Decide(CallDecision::granted("c1")),
        ThreadAsk::Decide(CallDecision::granted("c1")),
        ThreadAsk::Decide(CallDecision::denied("c1", "no")),
    ];
    check(
        &asks,
        &[
            "accepted t1-1; drive a",
            "Noted",
            "accepted t1-1; ring t1-1",
            "accepted t1-1",
            "refused decided: another decision about call `c1` was given before",
        ],
    );
    // It is known when the call waits no longer, too.
    let mut state = ThreadState::new("t1".into(), None);
    for ask in asks {
        state.handle(ask, Time(0), None);
    }
    let known = [Decision::Granted, Decision::Later].map(|decision| state.decided(&digest, &decision));
    assert_eq!((known, state.approvals().count()), ([Some(true), Some(false)], 0));
}

#[test]
fn the_queue_is_bounded() {
    let mut state = ThreadState::new("t1".into(), None);
    let asks = (0..65).map(|at| deliver(&format!("m{at}"), FOLLOW_UP));
    let replies: Vec<_> = asks.map(|ask| state.handle(ask, Time(0), None).0).collect();
    let full = ThreadReply::Refused("queue_full: 64 messages wait already; try again later".to_owned());
    assert_eq!((replies.iter().filter(|reply| **reply == full).count(), replies.last()), (1, Some(&full)));
    assert_eq!((state.queue().count(), state.status()), (64, &ThreadStatus::Idle));
}

#[test]
fn secrets_do_not_get_through_the_door() {
    let (mut state, redactor) = (ThreadState::new("t1".into(), None), redactor());
    let said = |text: &str| Arc::new(Message::user(text));
    let clean = |ask: ThreadAsk| ask.redacted(Some(&redactor)).unwrap();
    let abort = ThreadAsk::Abort { reason: None };
    assert_eq!(clean(abort.clone()), abort);
    let decision = |reason: &str| ThreadAsk::Decide(CallDecision::denied("c1", reason));
    assert_eq!(clean(decision(&format!("it has {SECRET}"))), decision("it has [redacted]"));
    let edited = |message| ThreadAsk::Edit { entry: "a".into(), message };
    assert_eq!(clean(edited(said(SECRET))), edited(said("[redacted]")));
    let (reply, _) =
        state.handle(say("a", &format!("My key is {SECRET}."), FOLLOW_UP), Time(0), Some(&redactor));
    assert_eq!(reply, ThreadReply::Accepted(None));
    let waiting: Vec<_> = state.queue().map(|queued| queued.message.joined_text()).collect();
    assert_eq!(waiting, ["My key is [redacted]."]);
}
