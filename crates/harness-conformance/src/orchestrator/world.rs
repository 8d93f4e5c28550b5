//! World of one vector.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use harness_core::message::{Block, Message, UserMessage};
use harness_runtime::Thread;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::sessions::Sessions;
use super::words::{Entry, Options, Said};
use crate::Done;
use crate::driver::durable::EngineThread;

/// State that the model, the tools and the actions of one vector share.
pub(super) struct World {
    pub(super) options: Options,
    pub(super) sessions: Arc<Sessions>,
    state: Mutex<State>,
}

/// The thread of a vector.
#[derive(Clone)]
pub(super) enum Place {
    Process(Thread),
    Engine(EngineThread),
}

#[derive(Default)]
struct State {
    place: Option<Place>,
    script: VecDeque<Entry>,
    requests: Vec<Value>,
    keys: VecDeque<String>,
    in_run: Vec<Value>,
    broken: Option<String>,
    gates: HashMap<String, Arc<Semaphore>>,
}

impl World {
    pub(super) fn new(options: Option<Options>, script: Option<Vec<Entry>>) -> Done<Self> {
        let options = options.unwrap_or_default();
        let keys = options.api_keys.iter().flatten().cloned().collect();
        let script = script.unwrap_or_default().into();
        let state = Mutex::new(State { script, keys, ..State::default() });
        Ok(Self { sessions: Arc::new(Sessions::new(&options)?), options, state })
    }

    pub(super) fn set_place(&self, place: Option<Place>) {
        self.state.lock().place = place;
    }

    pub(super) fn place(&self) -> Done<Place> {
        self.state.lock().place.clone().ok_or_else(|| "there is no thread".to_owned())
    }

    /// The next entry of the model's script.
    pub(super) fn next_entry(&self) -> Option<Entry> {
        self.state.lock().script.pop_front()
    }

    pub(super) fn asked(&self, request: Value) {
        self.state.lock().requests.push(request);
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.state.lock().requests.clone()
    }

    pub(super) fn next_key(&self) -> String {
        self.state.lock().keys.pop_front().unwrap_or_default()
    }

    /// A vector that cannot be played.
    pub(super) fn break_off(&self, fault: String) {
        self.state.lock().broken.get_or_insert(fault);
    }

    pub(super) fn broken(&self) -> Done<()> {
        self.state.lock().broken.clone().map_or(Ok(()), Err)
    }

    /// Something happened inside of a run.
    pub(super) fn note(&self, result: Value) {
        self.state.lock().in_run.push(result);
    }

    pub(super) fn take_notes(&self) -> Vec<Value> {
        std::mem::take(&mut self.state.lock().in_run)
    }

    /// The gate of that name, closed at first.
    pub(super) fn gate(&self, name: &str) -> Arc<Semaphore> {
        Arc::clone(
            self.state.lock().gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))),
        )
    }
}

/// The user message of an action: its text, then its images.
pub(super) fn user_message(Said { text, images }: &Said) -> Message {
    let images = images.iter().flatten().map(|image| Block::image(&*image.data, &*image.mime_type));
    let mut message = UserMessage::text(text);
    message.content.extend(images);
    message.into()
}
