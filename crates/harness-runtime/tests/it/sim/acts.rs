//! What is done to threads.

use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_core::EntryId;
use harness_core::message::Message;
use harness_runtime::{
    DeliveryMode, DeliveryState, Report, ResumeFrom, RuntimeError, StartAt, Status, Thread,
};

use super::cast::config;
use super::readers;
use super::world::{Fate, Way, World};

/// The thread of that name, with a model that knows it.
pub(super) fn thread_of(world: &Arc<World>, name: &str) -> Thread {
    let (thread, new) = world.thread(name);
    if new {
        let config = config(world, name);
        thread.configure(|settings| *settings = config);
    }
    thread
}

/// Something that never waits, from inside of a run: a model or a tool does it.
pub(super) fn inside(world: &Arc<World>, name: &str) {
    let name = if world.one_in(3) { world.any_name() } else { name.to_owned() };
    let thread = thread_of(world, &name);
    if matches!(thread.status(), Status::Generating { .. } | Status::Aborting { .. }) && world.one_in(4) {
        let refused = thread.prompt("nested").now_or_never();
        let at_once = matches!(&refused, Some(Err(RuntimeError::Busy { .. } | RuntimeError::Closed { .. })));
        world.expect(at_once, || format!("{name}: prompted at work, it said {refused:?}"));
    } else {
        at_once(world, &name, &thread);
    }
}

/// Something from outside, in a task of its own when it takes a time.
pub(super) fn outside(world: &Arc<World>) {
    let name = world.any_name();
    let thread = thread_of(world, &name);
    let world = Arc::clone(world);
    match world.below(26) {
        0..=3 => drop(tokio::spawn(prompt(world, name, thread))),
        4..=13 => at_once(&world, &name, &thread),
        14 => drop(tokio::spawn(go_on(world, name, thread))),
        15 | 16 => drop(tokio::spawn(respond(world, name, thread))),
        17 => drop(tokio::spawn(abort(world, name, thread))),
        18 | 19 => drop(tokio::spawn(compact(world, name, thread))),
        20 => {
            let unloaded = thread.unload();
            world.log(&name, &format!("unload: {unloaded}"));
        }
        21 => drop(tokio::spawn(look(world, name, thread))),
        22 if world.one_in(3) => drop(tokio::spawn(close(world, name, thread))),
        22 => {
            let config = config(&world, &name);
            thread.configure(|settings| *settings = config);
        }
        _ => {
            let from = world.pick(&[StartAt::Live, StartAt::Turn, StartAt::Replay]);
            let (pace, one_run) = (world.pick(&[0, 0, 3, 200]), world.one_in(2));
            readers::spawn(&world, &name, &thread, from, pace, one_run);
        }
    }
}

/// Something that never waits.
fn at_once(world: &Arc<World>, name: &str, thread: &Thread) {
    match world.below(13) {
        0 | 1 => execute(world, name, thread, Way::NextTurn),
        2 | 3 => execute(world, name, thread, Way::BetweenRounds),
        4 | 5 => execute(world, name, thread, Way::Interrupt),
        6 => execute(world, name, thread, Way::Steer),
        7 => execute(world, name, thread, Way::FollowUp),
        8 => edit(world, name, thread),
        9 => cancel(world, name, thread),
        10 => reorder(world, name, thread),
        11 => {
            let any = thread.abort("enough").any();
            world.log(name, &format!("abort: {any}"));
        }
        _ => {
            let unloaded = thread.unload();
            world.log(name, &format!("unload: {unloaded}"));
        }
    }
}

pub(super) fn execute(world: &Arc<World>, name: &str, thread: &Thread, way: Way) {
    // Behind an earlier interruption that waits, the steering of that one's run comes first.
    let alone = waiting(thread, |mode| mode == DeliveryMode::Interrupt).is_empty();
    let before = if way == Way::Interrupt && alone { waiting(thread, |_| true) } else { Vec::new() };
    let before = before.iter().filter_map(|entry| world.sent_as(name, entry)).collect();
    let (sent, text) = world.send(name, way, None, Fate::Never);
    let message = Message::user(text.clone());
    let own = world.one_in(3).then(|| format!("own-{text}"));
    let modes = |mode| match own {
        Some(id) => thread.execute_as(id, message.clone(), mode),
        None => thread.execute(message.clone(), mode),
    };
    let accepted = match way {
        Way::Prompt | Way::NextTurn => modes(DeliveryMode::NextTurn),
        Way::BetweenRounds => modes(DeliveryMode::BetweenRounds),
        Way::Interrupt => modes(DeliveryMode::Interrupt),
        Way::Steer => thread.steer(message),
        Way::FollowUp => thread.follow_up(message),
    };
    let queue: Vec<String> = thread.queue().iter().map(|entry| entry.message.joined_text()).collect();
    world.log(name, &format!("{way:?} {text}: {}, queue {queue:?}, {:?}", told(&accepted), thread.status()));
    match accepted {
        Ok(entry) => {
            let mut inner = world.lock();
            let sent = &mut inner.sent[sent];
            (sent.entry, sent.fate, sent.before) = (Some(entry), Fate::Once, before);
        }
        Err(RuntimeError::Closed { .. } | RuntimeError::QueueFull { .. }) => {}
        Err(error) => world.fault(format!("{name}: a message was refused: {error}")),
    }
}

fn told<T: std::fmt::Debug>(result: &Result<T, RuntimeError>) -> String {
    match result {
        Ok(done) => format!("{done:?}"),
        Err(error) => error.kind().to_owned(),
    }
}

fn waiting(thread: &Thread, wanted: impl Fn(DeliveryMode) -> bool) -> Vec<EntryId> {
    let waiting = thread.queue().into_iter().filter(|entry| entry.state == DeliveryState::Waiting);
    waiting.filter(|entry| wanted(entry.mode)).map(|entry| entry.id).collect()
}

/// Some message of the queue, waiting or not.
fn some_entry(world: &World, thread: &Thread) -> Option<(EntryId, bool)> {
    let queue = thread.queue();
    let at = usize::try_from(world.below(queue.len().max(1) as u64)).unwrap();
    queue.get(at).map(|entry| (entry.id.clone(), entry.state == DeliveryState::Waiting))
}

fn edit(world: &Arc<World>, name: &str, thread: &Thread) {
    let Some((entry, waits)) = some_entry(world, thread) else { return };
    let text = format!("<{name}.{}>", world.count());
    let done = thread.edit(&entry, Message::user(text.clone()));
    world.log(name, &format!("edit {entry} to {text}: {}", told(&done)));
    world.expect(done.is_ok() == waits, || format!("{name}: edit of {entry}: {}", told(&done)));
    let Some(at) = world.sent_as(name, &entry).filter(|_| done.is_ok()) else { return };
    let mut inner = world.lock();
    let sent = &mut inner.sent[at];
    let (instance, way) = (sent.instance, sent.way);
    let old = std::mem::replace(&mut sent.text, text);
    let (thread, fate) = (name.to_owned(), Fate::Never);
    let gone = super::world::Sent {
        thread,
        instance,
        text: old,
        entry: None,
        way,
        fate,
        moved: true,
        before: Vec::new(),
    };
    inner.sent.push(gone);
}

fn cancel(world: &Arc<World>, name: &str, thread: &Thread) {
    let Some((entry, waits)) = some_entry(world, thread) else { return };
    let done = thread.cancel(&entry);
    world.log(name, &format!("cancel {entry}: {}", done.is_ok()));
    world.expect(done.is_ok() == waits, || format!("{name}: cancel of {entry}: {}", told(&done)));
    if let Some(at) = world.sent_as(name, &entry).filter(|_| done.is_ok()) {
        world.lock().sent[at].fate = Fate::Never;
    }
}

fn reorder(world: &Arc<World>, name: &str, thread: &Thread) {
    let Some((entry, waits)) = some_entry(world, thread) else { return };
    let place = usize::try_from(world.below(4)).unwrap();
    let done = thread.reorder(&entry, place);
    world.log(name, &format!("move {entry} to {place}: {}", done.is_ok()));
    world.expect(done.is_ok() == waits, || format!("{name}: reorder of {entry}: {}", told(&done)));
    if done.is_err() {
        return;
    }
    // Interruptions go behind those that lead the queue: what was moved between them has them part.
    let moved = waiting(thread, |mode| mode == DeliveryMode::Interrupt).into_iter().chain([entry]);
    for at in moved.filter_map(|entry| world.sent_as(name, &entry)) {
        world.lock().sent[at].moved = true;
    }
}

pub(super) async fn prompt(world: Arc<World>, name: String, thread: Thread) {
    let (sent, text) = world.send(&name, Way::Prompt, None, Fate::Perhaps);
    world.log(&name, &format!("prompt {text}"));
    let waits = world.waits(format!("{name}: prompt {text}"));
    let done = thread.prompt(text.clone()).await;
    world.is_answered(waits);
    world.log(&name, &format!("prompt {text} ended: {}", brief(&done)));
    let fate = match &done {
        Ok(_) => Fate::Once,
        Err(RuntimeError::Busy { .. } | RuntimeError::Closed { .. }) => Fate::Never,
        Err(_) => Fate::Perhaps,
    };
    world.lock().sent[sent].fate = fate;
    heard(&world, &name, done);
}

fn brief(done: &Result<Report, RuntimeError>) -> String {
    match done {
        Ok(report) => format!("{} of {}", report.end.reason(), report.run),
        Err(error) => error.kind().to_owned(),
    }
}

/// An answer that a waiter may get.
fn heard(world: &World, name: &str, done: Result<Report, RuntimeError>) {
    match done {
        Ok(report) => {
            let transcript: Vec<_> = report.transcript.iter().cloned().collect();
            if let Err(why) = super::laws::legal(&transcript, false) {
                world.fault(format!("{name}: the transcript of a report: {why}"));
            }
        }
        Err(RuntimeError::Lost { .. }) if world.has_crashed() => {}
        Err(RuntimeError::Session(_)) if world.plan.faulty => {}
        Err(
            RuntimeError::Busy { .. }
            | RuntimeError::Closed { .. }
            | RuntimeError::EmptyTranscript { .. }
            | RuntimeError::NothingToResume { .. },
        ) => {}
        Err(error) => world.fault(format!("{name}: a waiter was told: {error}")),
    }
}

async fn go_on(world: Arc<World>, name: String, thread: Thread) {
    let waits = world.waits(format!("{name}: continue"));
    let done = thread.resume(ResumeFrom::Transcript).await;
    world.is_answered(waits);
    world.log(&name, &format!("continue: {}", brief(&done)));
    heard(&world, &name, done);
}

async fn respond(world: Arc<World>, name: String, thread: Thread) {
    let waits = world.waits(format!("{name}: response"));
    let done = thread.response().await;
    world.is_answered(waits);
    world.log(&name, &format!("response: {}", brief(&done)));
    heard(&world, &name, done);
}

/// Abort ends a run within the grace, whatever it is at.
async fn abort(world: Arc<World>, name: String, thread: Thread) {
    let was = thread.status();
    let stopping = thread.abort("stop");
    world.log(&name, &format!("abort of {was:?}: {}", stopping.any()));
    let stops = matches!(was, Status::Generating { .. } | Status::Compacting);
    world.expect(stopping.any() == stops, || format!("{name}: abort of {was:?} said {}", stopping.any()));
    let waits = world.waits(format!("{name}: the end of what was aborted"));
    let since = world.now();
    stopping.ended().await;
    world.is_answered(waits);
    // A session may take its time at the end, because nothing may cut it off.
    let took = world.now().since(since).0;
    let most = world.plan.grace.0 + super::turns::SESSION_TIME;
    world.expect(took <= most, || format!("{name}: an abort took {took} ms, at most {most}"));
}

async fn compact(world: Arc<World>, name: String, thread: Thread) {
    let waits = world.waits(format!("{name}: compact"));
    let patience = world.pick(&[3, 50, 1_000_000]);
    let done = tokio::select! {
        biased;
        done = thread.compact(None) => Some(done.map(|note| note.is_some())),
        () = world.sleep(patience) => None,
    };
    world.is_answered(waits);
    world.log(&name, &format!("compact: {done:?}"));
    if let Some(Err(error)) = done {
        let known = match &error {
            RuntimeError::Busy { .. } | RuntimeError::Closed { .. } | RuntimeError::Compaction(_) => true,
            RuntimeError::Session(_) => world.plan.faulty,
            _ => false,
        };
        world.expect(known, || format!("{name}: compact: {error}"));
    }
}

async fn look(world: Arc<World>, name: String, thread: Thread) {
    let waits = world.waits(format!("{name}: a look"));
    let (messages, snapshot) = (thread.messages().await, thread.snapshot().await);
    world.is_answered(waits);
    for failed in [messages.as_ref().err(), snapshot.as_ref().err()].into_iter().flatten() {
        let known = world.plan.faulty || matches!(failed, RuntimeError::Closed { .. });
        world.expect(known, || format!("{name}: a look: {failed}"));
    }
    if let Ok(messages) = messages {
        let messages: Vec<_> = messages.iter().cloned().collect();
        if let Err(why) = super::laws::legal(&messages, true) {
            world.fault(format!("{name}: the messages: {why}"));
        }
    }
}

async fn close(world: Arc<World>, name: String, thread: Thread) {
    let instance = world.instance(&name);
    world.log(&name, "close");
    let waits = world.waits(format!("{name}: close"));
    thread.close().await;
    world.is_answered(waits);
    world.log(&name, "closed");
    world.is_gone(&name, instance);
    super::laws::gone(&world, &name, instance);
}
