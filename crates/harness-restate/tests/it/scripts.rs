//! The scripts that all laws are checked with.

use harness::core::Millis;

use super::world::{Act, FOLLOW_UP, INTERRUPT, STEER, Script, calls, request, task, text};

const SOON: Millis = Millis(5_000);
const LATE: Millis = Millis(3 * 24 * 3_600_000);

#[expect(clippy::too_many_lines, reason = "one case after another")]
pub(crate) fn all() -> Vec<Script> {
    let hi = "Order tea.";
    let script = |name, answers| Script { name, answers, said: vec![hi], ..Script::default() };
    vec![
        script("plain", vec![text("Hello.")]),
        script("each class of tools", vec![calls(&["look", "put", "pay"]), text("Done.")]),
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
            acts: vec![(0, Act::Grant("refund", LATE))],
            said: vec![hi, "Approved: Refund the tea?"],
            ..script("a request of the model", vec![request(), text("Refunded.")])
        },
        Script {
            acts: vec![(0, Act::Deny("c-sign", LATE))],
            ..script("denial of a parked run", vec![calls(&["sign"]), text("Not signed.")])
        },
        Script {
            child: vec![calls(&["look", "pay"]), text("Paid.")],
            ..script("a sub-agent that pays", vec![task(), text("Done.")])
        },
        Script {
            acts: vec![(0, Act::Abort(SOON))],
            ..script("abort while a call waits", vec![calls(&["pay", "sign"])])
        },
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

/// Scripts with parts that misbehave.
pub(crate) fn poisoned() -> Vec<Script> {
    let script = |name, answers| Script { name, answers, said: vec!["Order tea."], ..Script::default() };
    vec![
        script("a tool that panics", vec![calls(&["boom"]), text("Sorry.")]),
        script("a result that is too large", vec![calls(&["huge"]), text("Sorry.")]),
        Script { hangs: Some(0), ..script("a silent model", vec![]) },
    ]
}
