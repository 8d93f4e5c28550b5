//! Random timelines: whatever is done when, nothing that was accepted is lost.

use harness_core::message::Message;
use harness_runtime::{DeliveryMode, LateSteering, QueueMode, Thread};
use proptest::prelude::*;

use crate::support::{Step, during, history, thread_with};

/// What happens while a model is asked.
#[derive(Clone, Copy, Debug)]
enum Act {
    NextTurn,
    BetweenRounds,
    Interrupt,
    Steer,
    FollowUp,
    Abort,
}

/// How the model answers then.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Say,
    Call,
    Fail,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::NextTurn),
        Just(Act::BetweenRounds),
        Just(Act::Interrupt),
        Just(Act::Steer),
        Just(Act::FollowUp),
        Just(Act::Abort),
    ]
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![3 => Just(Ends::Say), 2 => Just(Ends::Call), 1 => Just(Ends::Fail)]
}

fn perform(thread: &Thread, act: Act, name: String) {
    let message = Message::user(name);
    match act {
        Act::NextTurn => drop(thread.execute(message, DeliveryMode::NextTurn)),
        Act::BetweenRounds => drop(thread.execute(message, DeliveryMode::BetweenRounds)),
        Act::Interrupt => drop(thread.interrupt(message)),
        Act::Steer => drop(thread.steer(message)),
        Act::FollowUp => drop(thread.follow_up(message)),
        Act::Abort => drop(thread.abort("stop")),
    }
}

/// The steps of a model that is asked once per entry, and the messages that are accepted meanwhile.
fn script(timeline: &[(Vec<Act>, Ends)]) -> (Vec<Step>, Vec<String>) {
    let (mut steps, mut accepted) = (Vec::new(), vec!["first".to_owned()]);
    for (asked, (acts, ends)) in timeline.iter().enumerate() {
        let named: Vec<(Act, String)> =
            acts.iter().enumerate().map(|(nth, act)| (*act, format!("m{asked}.{nth}"))).collect();
        let messages = named.iter().filter(|(act, _)| !matches!(act, Act::Abort));
        accepted.extend(messages.map(|(_, name)| name.clone()));
        let cuts_off = acts.iter().any(|act| matches!(act, Act::Abort | Act::Interrupt));
        steps.push(during(move |thread| {
            for (act, name) in named {
                perform(thread, act, name);
            }
        }));
        steps.push(match ends {
            _ if cuts_off => Step::Hang,
            Ends::Say => Step::Say("ok"),
            Ends::Call => Step::Call("c"),
            Ends::Fail => Step::Fail("down"),
        });
    }
    (steps, accepted)
}

fn check(timeline: &[(Vec<Act>, Ends)], mode: QueueMode, late: LateSteering) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (mut steps, accepted) = script(timeline);
        steps.extend((0..64).map(|_| Step::Say("fine")));
        let (thread, model) = thread_with(steps, |config| {
            (config.steering_mode, config.follow_up_mode, config.late_steering) = (mode, mode, late);
        });
        thread.prompt("first").await.expect("a report");
        let mut prompts = 0;
        // What waits quietly needs somebody to speak, and what the script has left to do needs to be asked for.
        while thread.queue_len() > 0 || model.requests().len() < timeline.len() {
            thread.wait_idle().await;
            thread.prompt(format!("more{prompts}")).await.expect("a report");
            prompts += 1;
        }
        thread.wait_idle().await;
        let history = history(&thread).await;
        for name in &accepted {
            let times = history.split(' ').filter(|line| *line == format!("u:{name}")).count();
            assert_eq!(times, 1, "{name} in {history}");
        }
        for asked in model.asked() {
            assert!(history.starts_with(&asked), "the model saw {asked}, the transcript is {history}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_message_is_delivered_exactly_once_and_in_the_order_of_the_transcript(
        timeline in prop::collection::vec((prop::collection::vec(act(), 0..3), ends()), 1..6),
        all in any::<bool>(),
        late in any::<bool>(),
    ) {
        let mode = if all { QueueMode::All } else { QueueMode::OneAtATime };
        let late = if late { LateSteering::GoesOn } else { LateSteering::NextTurn };
        check(&timeline, mode, late);
    }
}
