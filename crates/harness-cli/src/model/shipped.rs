//! The recordings of an example in a conversation.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use harness::adapters::Replay;
use harness::core::CallId;
use harness::core::message::{AssistantMessage, Block, Message};
use harness::core::port::{Deltas, DynModel as _, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness::core::transcript::{Transcript, View};

use super::recordings::Recording;

/// Replays that are begun, at most; the oldest is given up for a new one.
const MOST: usize = 64;

/// Answers whatever was recorded, at any place of a conversation: what was said before the question is not
/// part of the recording, and is left out.
pub(super) struct Shipped {
    folder: PathBuf,
    known: Vec<Recording>,
    begun: Mutex<Vec<Arc<Replay>>>,
}

impl Shipped {
    pub(super) fn new(folder: PathBuf, known: Vec<Recording>) -> Self {
        Self { folder, known, begun: Mutex::default() }
    }

    /// The recording that the conversation is in, and what has been said in it.
    fn find(&self, view: &View) -> Option<(&Recording, Vec<Arc<Message>>)> {
        let mut messages = Vec::new();
        view.for_each(|message| messages.push(Arc::clone(message)));
        let question = |message: &Arc<Message>| {
            let said = matches!(&**message, Message::User(_)).then(|| message.joined_text())?;
            self.known.iter().find(|known| known.question == said.trim())
        };
        let (at, known) =
            messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, question(message)?)))?;
        Some((known, messages.split_off(at)))
    }

    /// The replays that may have the next answer: a new one for a question, else those that are as far.
    fn replays(&self, known: &Recording, answers: usize) -> Result<Vec<Arc<Replay>>, ModelFault> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if answers == 0 {
            let replay = Replay::open(&known.path).map_err(|error| fault(error.to_string()))?;
            let replay = Arc::new(replay);
            if begun.len() >= MOST {
                begun.remove(0);
            }
            begun.push(Arc::clone(&replay));
            return Ok(vec![replay]);
        }
        begun.retain(|replay| replay.unused() > 0);
        let of_it = begun.iter().filter(|replay| replay.path() == known.path && replay.used() == answers);
        Ok(of_it.cloned().collect())
    }

    fn unknown(&self) -> ModelFault {
        let questions: Vec<String> =
            self.known.iter().map(|known| format!("\n- {}", known.question)).collect();
        fault(format!(
            "no key is set, and the recordings in {} answer only:{}",
            self.folder.display(),
            questions.concat()
        ))
    }
}

fn fault(text: String) -> ModelFault {
    ModelFault::new(ModelFaultCode::Recording, text)
}

impl Model for Shipped {
    async fn step(
        &self,
        mut request: ModelRequest,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let Some((known, said)) = self.find(&request.view) else { return Err(self.unknown()) };
        let answers = said.iter().filter(|message| message.as_assistant().is_some()).count();
        // A conversation that plays a recording again has other ids for the same calls.
        let as_recorded: Vec<_> = said.iter().map(with_first_ids).collect();
        let mut told = self.unknown();
        for replay in self.replays(known, answers)? {
            for said in [&said, &as_recorded] {
                request.view = View::whole(said.iter().cloned().collect::<Transcript>().prefix());
                match replay.step_boxed(request.clone(), deltas).await {
                    Ok(answer) => return Ok(answer),
                    Err(fault) => told = fault,
                }
            }
        }
        Err(told)
    }
}

/// The message with the ids that its calls had before they were made unique: `call_1` for `call_1-2`.
fn with_first_ids(message: &Arc<Message>) -> Arc<Message> {
    let mut message = Arc::clone(message);
    match Arc::make_mut(&mut message) {
        Message::Assistant(answer) => {
            for block in &mut answer.content {
                if let Block::ToolCall(call) = block {
                    let call = Arc::make_mut(call);
                    call.id = first_id(&call.id);
                }
            }
        }
        Message::ToolResult(result) => result.tool_call_id = first_id(&result.tool_call_id),
        Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {}
    }
    message
}

fn first_id(id: &CallId) -> CallId {
    match id.as_str().rsplit_once('-') {
        Some((first, count)) if !first.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) => {
            CallId::from(first)
        }
        Some(_) | None => id.clone(),
    }
}
