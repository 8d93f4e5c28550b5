//! What must hold, whatever was done when.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{FinishReason, Message};
use harness_runtime::{RuntimeError, Status};

use super::acts::thread_of;
use super::world::{Fate, Sent, Way, World};
use crate::support::short;

/// Whether every call has its one result behind its answer, in order; at the end of `open` transcripts some
/// may be missing.
pub(super) fn legal(messages: &[Arc<Message>], open: bool) -> Result<(), String> {
    let mut owed: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Message::ToolResult(result) = &**message {
            let id = result.tool_call_id.to_string();
            if owed.first() != Some(&id) {
                return Err(format!("law 1: message {at} answers {id}, owed are {owed:?}"));
            }
            owed.remove(0);
            continue;
        }
        if !owed.is_empty() {
            return Err(format!("law 1: message {at} comes before the results of {owed:?}"));
        }
        if let Message::Assistant(answer) = &**message {
            let broken = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
            let calls = answer.tool_calls().map(|call| call.id.to_string());
            owed = if broken { Vec::new() } else { calls.collect() };
        }
    }
    if owed.is_empty() || open { Ok(()) } else { Err(format!("law 1: no results of {owed:?}")) }
}

/// Where each message that somebody sent stands.
fn places(all: &[Arc<Message>]) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, message) in all.iter().enumerate() {
        let text = message.joined_text();
        if !matches!(**message, Message::User(_)) {
            continue;
        }
        if let (Some(from), Some(to)) = (text.find('<'), text.find('>')) {
            places.entry(text[from..=to].to_owned()).or_default().push(at);
        }
    }
    places
}

/// A thread was closed, or its process died: what it had not delivered is gone, and stays away.
pub(super) fn gone(world: &World, name: &str, instance: u32) {
    let all = world.shelf(name, |shelf| shelf.all());
    let places = places(&all);
    let mut inner = world.lock();
    if world.plan.faulty {
        // What a session that failed did not take is gone, too.
        let stored = |message: &Arc<Message>| all.iter().any(|stored| Arc::ptr_eq(stored, message));
        inner.asked.retain(|asked| asked.thread != name || asked.view.iter().all(stored));
    }
    let of_it = inner.sent.iter_mut().filter(|sent| sent.thread == name && sent.instance == instance);
    for sent in of_it.filter(|sent| sent.fate != Fate::Never) {
        let stands = places.contains_key(&sent.text);
        // A prompt whose end nobody told of may still be on its way when its thread is closed: never when it died.
        sent.fate = if stands { Fate::Once } else { Fate::Never };
    }
}

/// All processes died.
pub(super) fn all_gone(world: &World) {
    for name in world.names() {
        gone(world, &name, world.instance(&name));
    }
}

/// The laws of everything that was ever said to a thread.
pub(super) fn judge(world: &World, name: &str) {
    let all = world.shelf(name, |shelf| shelf.all());
    let loaded = world.shelf(name, |shelf| shelf.load()).messages;
    for (what, messages) in [("history", &all), ("session", &loaded)] {
        if let Err(why) = legal(messages, false) {
            world.fault(format!("{name}: the {what}: {why}"));
        }
    }
    let mut faults = Vec::new();
    let inner = world.lock();
    let places = places(&all);
    let sent: Vec<&Sent> = inner.sent.iter().filter(|sent| sent.thread == name).collect();
    for sent in &sent {
        let times = places.get(&sent.text).map_or(0, Vec::len);
        let holds = match sent.fate {
            Fate::Once => times == 1,
            Fate::Perhaps => times <= 1,
            Fate::Never => times == 0,
        };
        if !holds {
            faults.push(format!("{name}: {} stands {times} times, not {:?}", sent.text, sent.fate));
        }
    }
    let place = |sent: &Sent| places.get(&sent.text).and_then(|places| places.first()).copied();
    in_order(&sent, place, &mut faults);
    // An interruption whose session could not be opened waits like everything else.
    for interrupt in sent.iter().filter(|sent| !sent.moved && !world.plan.faulty) {
        let waited = interrupt.before.iter().filter_map(|at| inner.sent.get(*at));
        for waited in waited.filter(|waited| !waited.moved) {
            if let (Some(first), Some(then)) = (place(interrupt), place(waited))
                && first > then
            {
                faults
                    .push(format!("{name}: {} came before the interruption {}", waited.text, interrupt.text));
            }
        }
    }
    for asked in inner.asked.iter().filter(|asked| asked.thread == name) {
        let shortened = inner.shortened.contains(name);
        if let Err(why) = shown(&asked.view, &all, asked.answer.as_deref(), shortened) {
            faults.push(format!("{name}: a request: {why}"));
        }
    }
    drop(inner);
    for fault in faults {
        world.fault(fault);
    }
}

/// Messages of one way come in the order in which they were sent.
fn in_order(sent: &[&Sent], place: impl Fn(&Sent) -> Option<usize>, faults: &mut Vec<String>) {
    for way in [Way::NextTurn, Way::BetweenRounds, Way::Interrupt, Way::Steer, Way::FollowUp] {
        let mut last: Option<(&Sent, usize)> = None;
        for sent in sent.iter().filter(|sent| sent.way == way && !sent.moved) {
            let Some(at) = place(sent) else { continue };
            if let Some((before, before_at)) = last
                && before_at > at
            {
                faults.push(format!("{}: {} came before {}", sent.thread, sent.text, before.text));
            }
            last = Some((sent, at));
        }
    }
}

/// Whether a model was shown the history as it was then, and what it answered follows what it was shown.
fn shown(
    view: &[Arc<Message>],
    all: &[Arc<Message>],
    answer: Option<&str>,
    shortened: bool,
) -> Result<(), String> {
    legal(view, false)?;
    let same = |a: &Arc<Message>, b: &Arc<Message>| Arc::ptr_eq(a, b) || a == b;
    let (mut at, mut seen) = (0, 0);
    for message in view {
        match all[at..].iter().position(|stored| same(stored, message)) {
            Some(0) => at += 1,
            Some(gap) if shortened => at += gap + 1,
            Some(_) | None => {
                return Err(format!("message {seen} is not the history's: {}", short(message)));
            }
        }
        seen += 1;
    }
    let follows = all.iter().position(|stored| {
        stored.as_assistant().is_some_and(|stored| Some(stored.joined_text().as_str()) == answer)
    });
    match follows {
        Some(place) if place != at => Err(format!("its answer stands at {place}, behind {at} messages")),
        Some(_) | None => Ok(()),
    }
}

/// A thread at rest shows nothing of what went on before, and what it shows is what its session holds.
pub(super) async fn rests(world: &Arc<World>, name: &str) {
    let mut thread = thread_of(world, name);
    let mut snapshot = thread.snapshot().await;
    if matches!(snapshot, Err(RuntimeError::Closed { .. })) {
        // Somebody closes it: once that is done it is another thread of the same session.
        thread.close().await;
        thread = thread_of(world, name);
        snapshot = thread.snapshot().await;
    }
    let Ok(snapshot) = snapshot else {
        return world.fault(format!("{name}: no snapshot of a thread at rest"));
    };
    let shown: Vec<_> = snapshot.messages.iter().cloned().collect();
    let idle = snapshot.status == Status::Idle;
    let empty = snapshot.answer.is_none() && snapshot.pending_calls.is_empty() && snapshot.waiting == 0;
    world.expect(idle && empty, || format!("{name}: not at rest: {snapshot:?}"));
    world.expect(thread.queue().is_empty(), || format!("{name}: left in the queue: {:?}", thread.queue()));
    let stored = world.shelf(name, |shelf| shelf.load()).messages;
    world.expect(shown == stored, || {
        let line =
            |messages: &[Arc<Message>]| messages.iter().map(|m| short(m)).collect::<Vec<_>>().join(" ");
        format!("{name}: it shows {}\nits session holds {}", line(&shown), line(&stored))
    });
}
