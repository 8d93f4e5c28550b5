//! Standing approvals.

use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::port::{ApprovalAsk, Approver as _, Decision, ProposedCall};
use harness_core::tool::ToolDef;
use harness_core::{Cancel, Json};
use harness_tools::{ApprovalAnswer, ApprovalRule, Asker, Remember, StandingApprovals};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::support::block_on;

fn asked(name: &str, arguments: &str) -> ApprovalAsk {
    let call = Arc::new(ToolCall::new("c", name, Json::parse(arguments).unwrap()));
    let proposed = ProposedCall::new(call, ToolDef::new(name, ""), "main".into(), 1);
    ApprovalAsk { proposed: proposed.held("it needs approval"), cancel: Cancel::new() }
}

/// Answers as it was told, and notes what it was asked.
#[derive(Clone)]
struct Person {
    answer: ApprovalAnswer,
    asked: Arc<Mutex<Vec<String>>>,
    /// Waits before each answer, if set.
    when: Option<Arc<Notify>>,
}

impl Person {
    fn new(answer: ApprovalAnswer) -> Self {
        Self { answer, asked: Arc::default(), when: None }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl Asker for Person {
    async fn ask(&self, ask: ApprovalAsk) -> ApprovalAnswer {
        self.asked.lock().push(format!("{} {}", ask.proposed.call.name, ask.proposed.call.arguments));
        if let Some(when) = &self.when {
            when.notified().await;
        }
        self.answer.clone()
    }
}

/// Which of some calls a person is asked about who gives that answer to each.
#[track_caller]
fn check(answer: impl Into<ApprovalAnswer>, calls: &[(&str, &str)], expected: &[&str]) {
    let person = Person::new(answer.into());
    let approvals = StandingApprovals::new(person.clone());
    for (name, arguments) in calls {
        block_on(approvals.decide(asked(name, arguments)));
    }
    assert_eq!(person.asked(), expected);
}

const CALLS: [(&str, &str); 4] =
    [("sh", r#"{"a":1,"b":2}"#), ("sh", r#"{"b":2,"a":1}"#), ("sh", "{}"), ("git__log", "{}")];

#[test]
fn an_answer_stands_for_as_long_as_it_says() {
    let all = [r#"sh {"a":1,"b":2}"#, r#"sh {"b":2,"a":1}"#, "sh {}", "git__log {}"];
    check(Decision::Granted, &CALLS, &all);
    check(ApprovalAnswer::granted(Remember::Arguments), &CALLS, &[all[0], all[2], all[3]]);
    check(ApprovalAnswer::granted(Remember::Tool), &CALLS, &[all[0], all[3]]);
}

#[test]
fn a_no_never_stands() {
    let mut never = ApprovalAnswer::granted(Remember::Tool);
    never.decision = Decision::Denied { reason: "no".to_owned() };
    check(never, &[("sh", "{}"), ("sh", "{}")], &["sh {}", "sh {}"]);
}

#[test]
fn very_long_arguments_are_not_kept() {
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(65 * 1024));
    let approvals = StandingApprovals::new(Person::new(ApprovalAnswer::granted(Remember::Arguments)));
    block_on(approvals.decide(asked("sh", &long)));
    assert_eq!(approvals.rules(), []);
}

#[test]
fn rules_are_carried_and_taken_back() {
    let text = r#"[{"tool_name":"sh"},{"tool_name":"log","server_label":"git"},{"tool_name":"pay","arguments":{"sum":1}}]"#;
    let rules: Vec<ApprovalRule> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&rules).unwrap(), text);
    let person = Person::new(Decision::Later.into());
    let approvals = StandingApprovals::new(person.clone()).with_rules(rules.clone());
    let decide = |name: &str, arguments: &str| block_on(approvals.decide(asked(name, arguments)));
    for (name, arguments) in [("sh", "{}"), ("git__log", "{}"), ("pay", r#"{"sum":1}"#)] {
        assert_eq!(decide(name, arguments), Decision::Granted, "{name}");
    }
    for (name, arguments) in [("log", "{}"), ("svn__log", "{}"), ("pay", r#"{"sum":1.5}"#)] {
        assert_eq!(decide(name, arguments), Decision::Later, "{name}");
    }
    assert!(approvals.revoke(&rules[0]) && !approvals.revoke(&rules[0]));
    assert_eq!(decide("sh", "{}"), Decision::Later);
}

#[test]
fn the_oldest_rule_goes_for_a_new_one() {
    let approvals = StandingApprovals::new(Person::new(Decision::Later.into()));
    (0..1_001).for_each(|n| approvals.add(ApprovalRule::of_tool(format!("t{n}"))));
    let rules = approvals.rules();
    assert_eq!((rules.len(), rules[0].tool_name.as_str()), (1_000, "t1"));
}

#[test]
fn code_allows_in_place_of_a_person() {
    let person = Person::new(Decision::Later.into());
    let approvals = StandingApprovals::new(person.clone()).always(|ask| ask.proposed.call.name == "look");
    assert_eq!(block_on(approvals.decide(asked("look", "{}"))), Decision::Granted);
    assert_eq!(block_on(approvals.decide(asked("pay", "{}"))), Decision::Later);
    assert_eq!(person.asked(), ["pay {}"]);
}

#[test]
fn one_call_is_asked_about_at_a_time_and_a_standing_answer_serves_those_that_wait() {
    let when = Arc::new(Notify::new());
    let mut person = Person::new(ApprovalAnswer::granted(Remember::Tool));
    person.when = Some(Arc::clone(&when));
    let approvals = StandingApprovals::new(person.clone());
    block_on(async {
        let decide = |name: &str| {
            let (approvals, ask) = (approvals.clone(), asked(name, "{}"));
            tokio::spawn(async move { approvals.decide(ask).await })
        };
        let waiting = [decide("sh"), decide("sh"), decide("pay")];
        while person.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(person.asked(), ["sh {}"]);
        when.notify_one();
        while person.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
        when.notify_one();
        for decision in waiting {
            assert_eq!(decision.await.unwrap(), Decision::Granted);
        }
    });
    assert_eq!(person.asked(), ["sh {}", "pay {}"]);
}

#[test]
fn a_call_that_waits_can_be_given_up() {
    let when = Arc::new(Notify::new());
    let mut person = Person::new(Decision::Granted.into());
    person.when = Some(Arc::clone(&when));
    let approvals = StandingApprovals::new(person.clone());
    block_on(async {
        let first = tokio::spawn({
            let approvals = approvals.clone();
            async move { approvals.decide(asked("sh", "{}")).await }
        });
        while person.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        let given_up = asked("pay", "{}");
        given_up.cancel.cancel();
        assert_eq!(approvals.decide(given_up).await, Decision::Later);
        when.notify_one();
        assert_eq!(first.await.unwrap(), Decision::Granted);
    });
    assert_eq!(person.asked(), ["sh {}"]);
}

#[test]
fn an_approver_of_another_kind_can_be_wrapped() {
    struct Host;
    impl harness_core::port::Approver for Host {
        async fn decide(&self, _: ApprovalAsk) -> Decision {
            Decision::Edited(Json::empty_object())
        }
    }
    let approvals = StandingApprovals::around(Host).with_rules([ApprovalRule::of_tool("look")]);
    assert_eq!(block_on(approvals.decide(asked("look", "{}"))), Decision::Granted);
    assert_eq!(block_on(approvals.decide(asked("pay", "{}"))), Decision::Edited(Json::empty_object()));
}
