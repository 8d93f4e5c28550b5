//! What one vector plays in.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::message::Message;
use harness_runtime::Thread;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::sessions::Sessions;
use crate::turn::convert::{Done, at, list, text};

/// What the model, the tools and the actions of one vector share.
pub(super) struct World {
    pub(super) options: Value,
    pub(super) sessions: Arc<Sessions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    script: VecDeque<Value>,
    requests: Vec<Value>,
    keys: VecDeque<String>,
    in_run: Vec<Value>,
    gates: HashMap<String, Arc<Semaphore>>,
}

impl World {
    pub(super) fn new(input: &Value) -> Done<Self> {
        let options = at(input, "options").clone();
        let keys = list(&options, "api_keys").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let script = list(input, "model_script").iter().cloned().collect();
        let state = Mutex::new(State { script, keys, ..State::default() });
        Ok(Self { sessions: Arc::new(Sessions::new(&options)?), options, state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_thread(&self, thread: Option<Thread>) {
        self.lock().thread = thread;
    }

    pub(super) fn thread(&self) -> Done<Thread> {
        self.lock().thread.clone().ok_or_else(|| "there is no thread".to_owned())
    }

    /// The next entry of the model's script.
    pub(super) fn next_entry(&self) -> Option<Value> {
        self.lock().script.pop_front()
    }

    pub(super) fn asked(&self, request: Value) {
        self.lock().requests.push(request);
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    pub(super) fn next_key(&self) -> String {
        self.lock().keys.pop_front().unwrap_or_default()
    }

    /// Something happened inside of a run.
    pub(super) fn note(&self, result: Value) {
        self.lock().in_run.push(result);
    }

    pub(super) fn take_notes(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().in_run)
    }

    /// The gate of that name, closed at first.
    pub(super) fn gate(&self, name: &str) -> Arc<Semaphore> {
        Arc::clone(self.lock().gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }
}

/// The user message of an action: its text, then its images.
pub(super) fn user_message(action: &Value) -> Done<Message> {
    let text = json!({"type": "text", "text": text(action, "text")});
    let images = list(action, "images")
        .iter()
        .map(|image| json!({"type": "image", "data": at(image, "data"), "mimeType": at(image, "mimeType")}));
    let content: Vec<Value> = std::iter::once(text).chain(images).collect();
    let message = serde_json::from_str::<Message>(&json!({"role": "user", "content": content}).to_string());
    message.map_err(|e| e.to_string())
}
