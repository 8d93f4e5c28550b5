//! The scripts that all laws are checked with.

use harness::core::Millis;
use harness::core::message::AssistantMessage;
use harness::runtime::{DeliveryRules, LateSteering, QueueMode};

use super::world::{Act, FOLLOW_UP, INTERRUPT, NOTE, STEER, Script, call, calls, request, tasks, text};

const SOON: Millis = Millis(5_000);
const LATE: Millis = Millis(3 * 24 * 3_600_000);
const LATER: Millis = Millis(4 * 24 * 3_600_000);

pub(crate) fn all() -> Vec<Script> {
    alone().into_iter().chain(delegating()).chain(parking()).collect()
}

/// Messages that wait are delivered together.
fn together() -> DeliveryRules {
    DeliveryRules { steering: QueueMode::All, follow_up: QueueMode::All, ..DeliveryRules::default() }
}

/// A mode and a list, which the next run of the thread has, and the mode also a sub-agent.
fn planned() -> Script {
    let note = "The mode is `plan` from now on. Look around and ask the user what is unclear, change nothing, and propose a \
                plan. When the user approves of it, ask for the mode `execute`.";
    let said = vec!["Order tea.", note, "And now?"];
    let child = Script { answers: vec![calls(&["pay"]), text("Paid.")], ..Script::default() };
    let child = Script { modes: true, ..child };
    let approved = [call("mode_set", r#"{"mode":"execute"}"#), call("work_item_add", r#"{"title":"tea"}"#)];
    let answers = vec![
        calls(&["pay-1"]),
        AssistantMessage::calls(approved),
        text("Planned."),
        AssistantMessage::calls([call("mode_get", "{}"), call("work_item_list", "{}")]),
        tasks(&["c-task"]),
        text("Paid."),
    ];
    let acts = vec![(2, Act::Say(FOLLOW_UP, "And now?"))];
    Script {
        name: "a mode and a list",
        modes: true,
        child: Some(Box::new(child)),
        acts,
        answers,
        said,
        ..Script::default()
    }
}

/// Scripts without sub-agents.
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn alone() -> Vec<Script> {
    let hi = "Order tea.";
    let script = |name, answers| Script { name, answers, said: vec![hi], ..Script::default() };
    vec![
        script("plain", vec![text("Hello.")]),
        script("each class of tools", vec![calls(&["look", "put", "pay"]), text("Done.")]),
        Script {
            layers: true,
            turns: 2,
            said: vec![hi, "Go on."],
            ..script(
                "layers",
                vec![
                    calls(&["tally_count-1", "look", "tally_count-2"]),
                    text("Twice."),
                    calls(&["tally_count-3"]),
                    text("Three times."),
                ],
            )
        },
        planned(),
        script("the same call again and again", vec![calls(&["look"]); 4]),
        script("one call after the other", vec![calls(&["pay-1"]), calls(&["pay-2"]), text("Done.")]),
        Script {
            acts: vec![(0, Act::Say(STEER, "And milk.")), (1, Act::Say(STEER, "And cake."))],
            said: vec![hi, "And milk.", "And cake."],
            ..script("steering", vec![calls(&["look"]), text("Tea."), text("Tea and milk."), text("All.")])
        },
        Script {
            acts: vec![(0, Act::Say(FOLLOW_UP, "Thanks."))],
            said: vec![hi, "Thanks."],
            ..script("follow-up", vec![text("Tea."), text("Welcome.")])
        },
        Script {
            acts: vec![(0, Act::Say(STEER, "And milk.")), (0, Act::Say(STEER, "And cake."))],
            delivery: together(),
            said: vec![hi, "And milk.", "And cake."],
            ..script("all steering at once", vec![calls(&["look"]), text("All.")])
        },
        Script {
            acts: vec![(0, Act::Say(FOLLOW_UP, "Thanks.")), (0, Act::Say(FOLLOW_UP, "Bye."))],
            delivery: together(),
            said: vec![hi, "Thanks.", "Bye."],
            ..script("all follow-ups at once", vec![text("Tea."), text("Welcome, and bye.")])
        },
        Script {
            acts: vec![(0, Act::Say(NOTE, "And milk."))],
            delivery: DeliveryRules { late_steering: LateSteering::NextTurn, ..DeliveryRules::default() },
            said: vec![hi, "And milk."],
            ..script("late steering in the next run", vec![text("Tea."), text("Tea and milk.")])
        },
        Script {
            acts: vec![(1, Act::Abort(Millis(0)))],
            hangs: Some(1),
            ..script("abort", vec![calls(&["look"])])
        },
        Script {
            acts: vec![(1, Act::Say(INTERRUPT, "Coffee!"))],
            hangs: Some(1),
            said: vec![hi, "Coffee!"],
            ..script("interrupt", vec![calls(&["look"]), text("cut off"), text("Coffee.")])
        },
        Script {
            acts: vec![(0, Act::Grant("c-sign", SOON))],
            ..script("approval while the run waits", vec![calls(&["sign"]), text("Signed.")])
        },
        Script {
            acts: vec![(0, Act::Grant("c-sign", LATE))],
            ..script("a call beside a parked one", vec![calls(&["pay", "sign", "look"]), text("Signed.")])
        },
        Script {
            acts: vec![(0, Act::Grant("c-sign", LATE))],
            ..script("approval of a parked run", vec![calls(&["sign"]), text("Signed.")])
        },
        Script {
            acts: vec![(0, Act::Grant("c-sign-1", LATE)), (0, Act::Deny("c-sign-2", LATER))],
            ..script("two parked calls", vec![calls(&["sign-1", "sign-2"]), text("Signed once.")])
        },
        Script {
            acts: vec![(0, Act::Grant("refund", LATE))],
            said: vec![hi, "Approved: Refund the tea?"],
            ..script("a request of the model", vec![request(), text("Refunded.")])
        },
        Script {
            acts: vec![(0, Act::Deny("c-sign", LATE))],
            ..script("denial of a parked run", vec![calls(&["sign"]), text("Not signed.")])
        },
        Script {
            acts: vec![(0, Act::Edit("c-sign", LATE))],
            ..script("another call in place of a parked one", vec![calls(&["sign"]), text("Signed.")])
        },
        Script {
            acts: vec![(0, Act::Abort(SOON))],
            ..script("abort while a call waits", vec![calls(&["pay", "sign"])])
        },
        Script {
            acts: vec![(0, Act::Abort(LATE))],
            ..script("abort of a parked run", vec![calls(&["pay", "sign"])])
        },
        Script { acts: vec![(0, Act::Abort(LATE))], ..script("abort of a parked request", vec![request()]) },
        Script {
            acts: vec![(0, Act::SayLater("Never mind.", LATE))],
            said: vec![hi, "Never mind."],
            ..script("a message instead of a decision", vec![calls(&["sign"]), text("Fine.")])
        },
        Script {
            acts: vec![
                (0, Act::Say(STEER, "It is sk-0123456789, too.")),
                (1, Act::Say(FOLLOW_UP, "Bye, sk-0123456789.")),
            ],
            said: vec!["My key is sk-0123456789.", "It is sk-0123456789, too.", "Bye, sk-0123456789."],
            is_secret: true,
            ..script("secrets", vec![calls(&["leak"]), text("It is sk-0123456789."), text("Bye.")])
        },
        script("nobody decides", vec![calls(&["sign"]), text("Not signed.")]),
        Script {
            turns: 3,
            said: vec![hi, "Go on.", "Go on."],
            ..script("turns", vec![text("One."), calls(&["pay"]), text("Two."), text("Three.")])
        },
    ]
}

/// A script whose agent asks sub-agents.
fn asking(name: &'static str, answers: Vec<AssistantMessage>) -> Script {
    Script { name, answers, said: vec!["Order tea."], ..Script::default() }
}

/// A script whose agent asks one sub-agent.
fn within(name: &'static str, child: Script) -> Script {
    Script { child: Some(Box::new(child)), ..asking(name, vec![tasks(&["c-task"]), text("Done.")]) }
}

/// A sub-agent that needs a signature, and what the user does then.
fn signs(act: Act) -> Script {
    Script { acts: vec![(0, act)], answers: vec![calls(&["sign"]), text("Signed.")], ..Script::default() }
}

/// All scripts, but for most of those with sub-agents: these are long.
pub(crate) fn fewer() -> Vec<Script> {
    let few = ["a sub-agent that pays", "an approval in a sub-agent", "abort in a sub-agent"];
    alone().into_iter().chain(delegating().into_iter().filter(|script| few.contains(&script.name))).collect()
}

/// Scripts with sub-agents.
fn delegating() -> Vec<Script> {
    let child = |answers| Script { answers, ..Script::default() };
    let pays = || child(vec![calls(&["look", "pay"]), text("Paid.")]);
    vec![
        within("a sub-agent that pays", pays()),
        within("a sub-agent that looks", child(vec![calls(&["look"]), calls(&["put"]), text("Seen.")])),
        Script {
            child: Some(Box::new(pays())),
            ..asking("two sub-agents at once", vec![tasks(&["c-1", "c-2"]), text("Done.")])
        },
        Script {
            child: Some(Box::new(pays())),
            ..asking("the same sub-agent again", vec![tasks(&["c-task"]), tasks(&["c-task"]), text("Done.")])
        },
        within("a sub-agent of a sub-agent", within("", pays())),
        within("an approval in a sub-agent", signs(Act::Grant("c-sign", SOON))),
        within("an approval two levels down", within("", signs(Act::Grant("c-sign", SOON)))),
        Script {
            answers: vec![tasks(&["c-task"])],
            ..within(
                "abort in a sub-agent",
                Script {
                    acts: vec![(1, Act::Abort(Millis(0)))],
                    hangs: Some(1),
                    ..child(vec![calls(&["pay"])])
                },
            )
        },
        Script {
            answers: vec![tasks(&["c-task"])],
            ..within(
                "abort two levels down",
                within(
                    "",
                    Script {
                        acts: vec![(0, Act::Abort(Millis(0)))],
                        hangs: Some(0),
                        heeds: true,
                        ..child(Vec::new())
                    },
                ),
            )
        },
        Script {
            answers: vec![tasks(&["c-task"])],
            ..within("abort while a sub-agent waits", signs(Act::Abort(SOON)))
        },
    ]
}

/// Scripts with sub-agents that are parked.
fn parking() -> Vec<Script> {
    let child = |answers| Script { answers, ..Script::default() };
    vec![
        within(
            "an approval in a sub-agent parked two levels down",
            within("", signs(Act::Grant("c-sign", LATE))),
        ),
        within(
            "a request of the model of a sub-agent",
            Script { answers: vec![request(), text("Refunded.")], ..signs(Act::Grant("refund", LATE)) },
        ),
        Script {
            answers: vec![tasks(&["c-task"])],
            ..within("abort of a parked sub-agent", signs(Act::Abort(LATE)))
        },
        within("nobody decides in a sub-agent", child(vec![calls(&["sign"]), text("Not signed.")])),
        Script {
            // Both ask alike, and the user decides once.
            child: Some(Box::new(signs(Act::Grant("c-sign", LATE)))),
            ..asking("two parked sub-agents", vec![tasks(&["c-1", "c-2"]), text("Done.")])
        },
        Script {
            acts: vec![(0, Act::SayLater("Never mind.", LATE))],
            said: vec!["Order tea.", "Never mind."],
            child: Some(Box::new(child(vec![calls(&["sign"]), text("Not signed.")]))),
            ..asking(
                "a message instead of a decision in a sub-agent",
                vec![tasks(&["c-task"]), text("Fine.")],
            )
        },
    ]
}

/// Scripts with parts that misbehave.
pub(crate) fn poisoned() -> Vec<Script> {
    let script = |name, answers| Script { name, answers, said: vec!["Order tea."], ..Script::default() };
    vec![
        script("a tool that panics", vec![calls(&["boom"]), text("Sorry.")]),
        script("a result that is too large", vec![calls(&["huge"]), text("Sorry.")]),
        Script { hangs: Some(0), ..script("a silent model", vec![]) },
    ]
}
