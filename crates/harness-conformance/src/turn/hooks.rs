//! The hooks of a vector: scripted answers, and a record of what each was shown.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_control::checks::{UnclearResults, default_question};
use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::{Invalid, ToolCall};
use harness_core::outcome::{AskReason, Question};
use harness_core::port::Progress;
use harness_core::testing::VirtualClock;
use harness_core::tool::ToolOutcome;
use harness_core::transcript::{Prefix, Transcript};
use harness_core::{Fault, FaultSource, Json, Millis};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::seen;
use super::words::{self, ClarifyStep, EvidenceOptions, HookStep, Thrown};
use crate::Done;

/// The hooks of one turn.
pub(super) struct Hooks {
    words: words::Hooks,
    evidence: Option<UnclearResults>,
    clock: VirtualClock,
    /// Messages before the turn's own steps: those of earlier turns, and the prompt.
    begin: usize,
    script: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    answers: VecDeque<ClarifyStep>,
    calls: Vec<Value>,
}

impl Hooks {
    pub(super) fn new(words: words::Hooks, clock: &VirtualClock, begin: usize) -> Done<Self> {
        let returned = words.transform_transcript.as_ref().and_then(|transform| transform.returns.as_ref());
        if returned.is_some_and(Value::is_array) {
            return Err("a transform that returns its own steps is not supported: `returns`".to_owned());
        }
        let clarify = words.clarify_on_tool_result.clone();
        let (answers, evidence) = clarify.map(|clarify| (clarify.results, clarify.evidence)).unzip();
        let evidence = evidence.flatten().map(evidence_hook);
        let script = Script { answers: answers.flatten().unwrap_or_default().into(), calls: Vec::new() };
        Ok(Self { words, evidence, clock: clock.clone(), begin, script: Mutex::new(script) })
    }

    /// Returns the recorded hook calls, in order.
    pub(super) fn calls(&self) -> Vec<Value> {
        self.script.lock().calls.clone()
    }

    /// Returns the scripted `transformTranscript`.
    pub(super) fn transform(&self) -> Option<words::Transform> {
        self.words.transform_transcript.clone()
    }

    pub(super) fn note(&self, call: Value) {
        self.script.lock().calls.push(call);
    }

    /// Performs a scripted step: advances the clock, then returns the scripted error, if any.
    fn perform(&self, duration_ms: Option<u64>, thrown: Option<&Thrown>) -> Result<(), Fault> {
        self.clock.advance(Millis(duration_ms.unwrap_or(0)));
        let fault = |thrown: &Thrown| Fault::new(FaultSource::Gate, "thrown", &*thrown.message);
        thrown.map_or(Ok(()), |thrown| Err(fault(thrown)))
    }

    fn step(&self, step: Option<&HookStep>) -> Result<(), Fault> {
        step.map_or(Ok(()), |step| self.perform(step.duration_ms, step.throw.as_ref()))
    }
}

/// The built-in heuristic with a vector's options.
pub(crate) fn evidence_hook(options: EvidenceOptions) -> UnclearResults {
    let mut hook = UnclearResults::default();
    if let Some(keys) = options.empty_result_keys {
        hook = hook.with_empty_result_keys(keys);
    }
    hook = hook.excluding(options.exclude_tool_names.unwrap_or_default());
    for (reason, question) in options.question_for_reason.unwrap_or_default() {
        hook = hook.asking(reason, question);
    }
    hook
}

/// A text of the product's own wording as the placeholder that stands for it in vectors.
pub(crate) fn placeholder(text: &str, tool: &str) -> String {
    let reasons = [
        AskReason::EmptyResults,
        AskReason::AmbiguousIdentifier,
        AskReason::TransientProviderError,
        AskReason::Custom,
    ];
    let found = reasons.into_iter().find(|reason| default_question(*reason, tool) == text);
    found.map_or_else(|| text.to_owned(), |reason| format!("<default-question:{}:{tool}>", reason.as_str()))
}

/// A question in the vector's form.
pub(crate) fn question(question: &Question, tool: &str) -> Done<Value> {
    let mut value = serde_json::to_value(question).map_err(|e| e.to_string())?;
    if let Some(map) = value.as_object_mut() {
        map.remove("text");
        map.insert("question".to_owned(), json!(placeholder(&question.text, tool)));
    }
    Ok(value)
}

/// A scripted question. Only a text is a question.
fn scripted(value: &Value) -> Option<Question> {
    let asked = value.get("question")?.as_str()?;
    let reason = value.get("reason").cloned().and_then(|reason| serde_json::from_value(reason).ok());
    let mut question = Question::new(asked, AskReason::Custom);
    question.reason = reason;
    question.metadata = value.get("metadata").and_then(|metadata| Json::of(metadata).ok());
    Some(question)
}

/// A hook that a vector has, as the product's check.
#[derive(Clone, Copy)]
enum Kind {
    ToolError,
    Clarify,
    Invalid,
}

struct Hook(Arc<Hooks>, Kind);

impl Check for Hook {
    async fn judge(&self, subject: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        let Self(hooks, kind) = self;
        let verdict = match (kind, subject) {
            (Kind::ToolError, Subject::Result { call, outcome, progress }) if outcome.is_error() => {
                hooks.tool_error(call, outcome, &hooks.state(&cx.log, progress))?;
                CheckVerdict::Accept
            }
            (Kind::Clarify, Subject::Result { call, outcome, progress }) => {
                let asked = hooks.clarify(call, outcome, &hooks.state(&cx.log, progress))?;
                asked.map_or(CheckVerdict::Accept, CheckVerdict::Ask)
            }
            (Kind::Invalid, Subject::Invalid { invalid, progress }) => {
                hooks.invalid_output(invalid, &hooks.state(&cx.log, progress))?;
                CheckVerdict::Accept
            }
            _ => CheckVerdict::Accept,
        };
        Ok(verdict.into())
    }
}

impl Hooks {
    /// Those that may ask something, or that the turn waits for.
    pub(super) fn checks(self: &Arc<Self>) -> Vec<Guarded<dyn DynCheck>> {
        let words = &self.words;
        [
            ("onToolError", words.on_tool_error.is_some(), Kind::ToolError, Points::RESULT),
            ("clarifyOnToolResult", words.clarify_on_tool_result.is_some(), Kind::Clarify, Points::RESULT),
            ("onInvalidModelOutput", words.on_invalid_model_output.is_some(), Kind::Invalid, Points::INVALID),
        ]
        .into_iter()
        .filter(|(_, wanted, ..)| *wanted)
        .map(|(name, _, kind, points)| {
            let hook = check::new(name, points, Hook(Arc::clone(self), kind));
            hook.within(None).on_error(OnError::Lenient)
        })
        .collect()
    }

    fn state(&self, log: &Prefix, progress: &Progress) -> Value {
        let (calls, elapsed) = (progress.tool_calls, progress.elapsed);
        seen::hook_state(log, self.begin, (progress.iteration, calls, elapsed))
    }

    fn clarify(
        &self,
        call: &ToolCall,
        outcome: &ToolOutcome,
        state: &Value,
    ) -> Result<Option<Question>, Fault> {
        let status = if outcome.is_error() { "error" } else { "success" };
        let mut told = json!({
            "hook": "clarifyOnToolResult", "callId": call.id.as_str(), "status": status, "state": state
        });
        let step = match &self.evidence {
            Some(_) => ClarifyStep::default(),
            None => self.script.lock().answers.pop_front().unwrap_or_default(),
        };
        let performed = self.perform(step.duration_ms, step.throw.as_ref());
        let asked = match &self.evidence {
            Some(hook) => hook.detect(call, outcome),
            None => step.value.as_ref().and_then(scripted),
        };
        let returned = match (&performed, &asked) {
            (Err(_), _) => json!({ "threw": true }),
            (Ok(()), Some(asked)) if self.evidence.is_some() => {
                question(asked, call.name.as_str()).unwrap_or_default()
            }
            (Ok(()), _) => step.value.unwrap_or_default(),
        };
        if let Some(told) = told.as_object_mut() {
            told.insert("returned".to_owned(), returned);
        }
        self.note(told);
        performed.map(|()| asked)
    }

    fn tool_error(&self, call: &ToolCall, outcome: &ToolOutcome, state: &Value) -> Result<(), Fault> {
        let code = outcome.error.as_ref().map(|error| error.code.clone());
        self.note(seen::object([
            ("hook", Some(json!("onToolError"))),
            ("callId", Some(json!(call.id.as_str()))),
            ("code", code.map(Value::String)),
            ("state", Some(state.clone())),
        ]));
        self.step(self.words.on_tool_error.as_ref())
    }

    fn invalid_output(&self, invalid: &Invalid, state: &Value) -> Result<(), Fault> {
        self.note(seen::object([
            ("hook", Some(json!("onInvalidModelOutput"))),
            ("reason", Some(json!(invalid.reason))),
            ("kind", invalid.kind.as_ref().map(|kind| json!(kind))),
            ("hasRaw", Some(json!(invalid.raw.is_some()))),
            ("state", Some(state.clone())),
        ]));
        self.step(self.words.on_invalid_model_output.as_ref())
    }
}

/// `onTurnFinished` as a listener: it only watches.
pub(super) struct Finished {
    hooks: Arc<Hooks>,
    log: Transcript,
}

impl Finished {
    /// Over a transcript that holds earlier work.
    pub(super) fn of(hooks: &Arc<Hooks>, log: &Transcript) -> Option<Self> {
        hooks.words.on_turn_finished.as_ref()?;
        Some(Self { hooks: Arc::clone(hooks), log: log.iter().cloned().collect() })
    }
}

impl Fold for Finished {
    fn apply(&mut self, event: &Event) {
        if let EventKind::MessageAppended { message, .. } = &event.kind {
            self.log.push(Arc::clone(message));
        }
        let EventKind::TurnFinished { end } = &event.kind else { return };
        let at = (event.iteration, end.usage.tool_calls, end.elapsed);
        self.hooks.note(json!({
            "hook": "onTurnFinished",
            "outcome": end.outcome().as_str(),
            "stopReason": end.reason().as_str(),
            "finalEventType": "turn_finished",
            "state": seen::hook_state(&self.log.prefix(), self.hooks.begin, at),
        }));
        if let Err(fault) = self.hooks.step(self.hooks.words.on_turn_finished.as_ref()) {
            std::panic::resume_unwind(Box::new(fault.message.clone()));
        }
    }
}

/// Every text of a value with the product's wording replaced by its placeholder.
pub(super) fn with_placeholders(value: &Value, tools: &[&str]) -> Value {
    match value {
        Value::String(text) => {
            let named = tools.iter().map(|tool| placeholder(text, tool)).find(|named| named != text);
            Value::String(named.unwrap_or_else(|| text.clone()))
        }
        Value::Array(list) => list.iter().map(|value| with_placeholders(value, tools)).collect(),
        Value::Object(map) => {
            let field = |(key, value): (&String, &Value)| (key.clone(), with_placeholders(value, tools));
            map.iter().map(field).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
