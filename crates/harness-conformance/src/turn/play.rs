//! Running a vector's turns and comparing what they expect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use harness::tools::{DuplicateGuard, DuplicateOptions};
use harness_control::checks::evidence_density;
use harness_core::driver::Ports;
use harness_core::machine::Start;
use harness_core::message::{ApprovalRequest, Message};
use harness_core::outcome::Continuation;
use harness_core::port::{ApprovalAsk, Approver, Clock as _, Decision, Prepared, SingleAgent};
use harness_core::testing::{ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::turn::{Execution, TurnSpec};
use harness_core::{Cancel, Fault, FaultSource, Json, Origin, Time};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::compare::{only, same, without};
use super::extras::{Abort, AbortingModel, AbortingTools, Complaints, Sink, Transform};
use super::flat::{Trace, streamed};
use super::hooks::{Finished, Hooks, with_placeholders};
use super::result::turn_result;
use super::words::{self, Place, Turns};
use super::{convert, seen};
use crate::Done;
use crate::case::block_on;
use crate::driver::{Driver, TurnCase};
use crate::guard::unworded;

/// Continuations: what of them is the contract.
const CONTINUATION: &[&str] = &["type", "turnId", "sessionId", "metadata", "state"];
const STATE: &[&str] = &["stopReason", "question", "request", "iteration", "toolCallCount", "toolEvidence"];

/// Expectations of a turn, in the order of comparison: the outcome first.
const ORDER: [&str; 12] = [
    "result",
    "streamEvents",
    "events",
    "hookCalls",
    "modelInputs",
    "listInputs",
    "toolExecutions",
    "approvalInputs",
    "consoleLines",
    "unusedModelSteps",
    "unusedToolResults",
    "clockAtEndMs",
];

/// Runs all turns of a vector; the first difference is the error.
pub(super) fn check(mut vector: Turns, driver: &dyn Driver) -> Done<()> {
    let mut spec = super::spec::spec(vector.limits.as_ref(), vector.tool_retry_config.as_ref())?;
    let later = vector.kind == "turn-ext";
    if later {
        spec.execution = Execution::Parallel { max: 64 };
    }
    let turns = std::mem::take(&mut vector.turns);
    let mut thread = Thread {
        driver,
        vector: &vector,
        later,
        spec,
        clock: VirtualClock::frozen(Time(vector.clock.start_ms)),
        log: Transcript::default(),
        continuation: None,
    };
    for (turn, number) in turns.into_iter().zip(1..) {
        thread.turn(turn).map_err(|difference| format!("turn {number}, {difference}"))?;
    }
    Ok(())
}

/// State that one turn passes to the next.
struct Thread<'v> {
    driver: &'v dyn Driver,
    vector: &'v Turns,
    /// Whether it is the source's later line.
    later: bool,
    spec: TurnSpec,
    clock: VirtualClock,
    log: Transcript,
    continuation: Option<Continuation>,
}

/// The ports of one turn, to be read when it is over.
struct Stage {
    model: ScriptedModel,
    tools: Option<ScriptedTools>,
    yields: Arc<Mutex<VecDeque<u64>>>,
    guard: Option<DuplicateOptions>,
    approvals: Option<Arc<Approvals>>,
    trace: Option<Arc<Mutex<Sink>>>,
    hooks: Option<Arc<Hooks>>,
    complaints: Complaints,
    abort: Abort,
    later: bool,
}

impl Thread<'_> {
    fn turn(&mut self, mut turn: words::Turn) -> Done<()> {
        let cancel = Cancel::new();
        let stage = self.stage(&mut turn, &cancel)?;
        let log = std::mem::take(&mut self.log);
        let begin = log.len();
        let mut ports = stage.ports(&self.clock, &turn.input.instructions.system_prompt, begin + 1);
        if let Some(finished) = stage.hooks.as_ref().and_then(|hooks| Finished::of(hooks, &log)) {
            ports.hub.fold(finished);
        }
        let stream = (turn.streaming == Some(true)).then(|| ports.hub.subscribe(1_024));
        let mut start = Start::prompt(Message::user(&*turn.input.message.text));
        start.continuation = self.resumed(turn.input.continuation.take())?.map(Box::new);
        let origin = convert::origin(turn.input);
        let (spec, ids) = (self.spec.clone(), origin.clone());
        let case = TurnCase { spec, origin: ids, log, ports: &ports, cancel: &cancel, start };
        let run = || block_on(self.driver.turn(case));
        let (end, log) = tracing::subscriber::with_default(stage.complaints.clone(), run)??;

        let result = turn_result(&end, &origin);
        self.continuation = end.continuation.as_deref().map(round_trip).transpose()?;
        self.log = log;
        let budgeted = self.vector.limits.as_ref().is_some_and(|limits| limits.budget_limit.is_some());
        let mut seen = stage.seen(&origin, begin, budgeted)?;
        seen.extend([
            ("result", contract(&result)),
            ("streamEvents", stream.map(streamed).unwrap_or_default().into()),
            ("clockAtEndMs", seen::clock(self.clock.now())),
        ]);
        let definitions = self.vector.tools.iter().flat_map(|tools| &tools.definitions);
        let names: Vec<&str> = definitions.map(|def| def.name.as_str()).collect();
        compare(&turn.expect, &seen, &names)
    }

    fn resumed(&self, given: Option<Json>) -> Done<Option<Continuation>> {
        match given {
            None => Ok(None),
            Some(previous) if previous == Json::string("$previous") => Ok(self.continuation.clone()),
            // One that no turn of this session made is handed over as it is.
            Some(given) => given.to().map(Some).map_err(|e| e.to_string()),
        }
    }

    /// The ports of a turn, made of its script.
    fn stage(&self, turn: &mut words::Turn, cancel: &Cancel) -> Done<Stage> {
        let abort = Abort::of(turn.abort.take(), cancel);
        let streams = turn.streaming == Some(true);
        let steps = std::mem::take(&mut turn.model).into_iter();
        let steps: Vec<_> = steps.map(|step| convert::model_step(step, streams)).collect::<Done<_>>()?;
        let results = turn.tool_results.take().unwrap_or_default();
        let yields = results.iter().map(|step| step.r#yields.unwrap_or(0)).collect();
        let hooks = turn.hooks.take().or_else(|| self.vector.hooks.clone());
        let trace = self.vector.trace.clone().unwrap_or_default();
        Ok(Stage {
            model: ScriptedModel::new(steps).with_clock(self.clock.clone()),
            tools: self.vector.tools.as_ref().map(|tools| self.tools(tools, results)).transpose()?,
            yields: Arc::new(Mutex::new(yields)),
            guard: self.vector.tools.as_ref().and_then(|tools| tools.idempotency_guard.as_ref()).map(guard),
            approvals: turn.approvals.take().map(|script| Approvals::of(script, &abort)).transpose()?,
            trace: (trace.present != Some(false)).then(|| Arc::new(Mutex::new(self.sink(trace)))),
            hooks: hooks
                .map(|words| Hooks::new(words, &self.clock, self.log.len() + 1))
                .transpose()?
                .map(Arc::new),
            complaints: Complaints::default(),
            abort,
            later: self.later,
        })
    }

    fn sink(&self, words: words::Trace) -> Sink {
        Sink { trace: Trace::of(self.later), words, flushed: false, seen: BTreeMap::new() }
    }

    fn tools(&self, tools: &words::Tools, results: Vec<words::ToolStep>) -> Done<ScriptedTools> {
        let steps: Vec<_> = results.into_iter().map(convert::tool_step).collect::<Done<_>>()?;
        let mut made = ScriptedTools::new(tools.definitions.iter().map(convert::tool_def))
            .answering(steps)
            .with_clock(self.clock.clone());
        if tools.honour_allowed != Some(true) {
            made = made.ignoring_allowed();
        }
        if let Some(thrown) = &tools.list_throw {
            made = made.failing_to_list(Fault::new(FaultSource::Tool, "thrown", &*thrown.message));
        }
        Ok(made)
    }
}

fn guard(words: &words::Guard) -> DuplicateOptions {
    let mut guard = DuplicateOptions::default();
    guard.max_runs = words.max_turns.unwrap_or(guard.max_runs);
    guard
}

impl Stage {
    fn ports(&self, clock: &VirtualClock, system_prompt: &str, begin: usize) -> Ports {
        let model = AbortingModel(self.model.clone(), self.abort.clone());
        let mut ports = Ports::new(Arc::new(model), Arc::new(clock.clone()));
        ports.agents = Arc::new(SingleAgent::new(system_prompt));
        if let Some(tools) = &self.tools {
            let (abort, yields) = (self.abort.clone(), Arc::clone(&self.yields));
            let tools = AbortingTools { tools: tools.clone(), abort, yields };
            ports.tools = match &self.guard {
                Some(guard) => Arc::new(DuplicateGuard::new(Arc::new(tools), guard.clone())),
                None => Arc::new(tools),
            };
        }
        if let Some(approvals) = &self.approvals {
            ports.approver = Some(Arc::new(Shared(Arc::clone(approvals))));
        }
        if let Some(hooks) = &self.hooks {
            if let Some(words) = hooks.transform() {
                let hooks = Arc::clone(hooks);
                ports.compactor = Some(Arc::new(Transform { hooks, words, begin }));
            }
            ports.checks.extend(hooks.checks());
        }
        if let Some(trace) = &self.trace {
            ports.hub.fold(Arc::clone(trace));
        }
        if self.later {
            ports.checks.push(evidence_density());
        }
        ports
    }

    /// Everything that ports were shown, by the name of the expectation.
    fn seen(&self, origin: &Origin, begin: usize, budgeted: bool) -> Done<BTreeMap<&'static str, Value>> {
        // The first own message is the prompt.
        let requests = self.model.requests();
        let inputs: Value = requests.iter().map(|r| seen::model_input(r, begin + 1, budgeted)).collect();
        let (lists, executions, unused) = match &self.tools {
            Some(tools) => (tools.lists(), tools.executions(), tools.unused()),
            None => (Vec::new(), Vec::new(), 0),
        };
        let asked = self.approvals.as_ref().map(|a| a.asked(origin)).transpose()?.unwrap_or_default();
        Ok(BTreeMap::from([
            ("events", self.traced().into()),
            ("hookCalls", self.hooks.as_ref().map(|hooks| hooks.calls()).unwrap_or_default().into()),
            ("modelInputs", inputs),
            ("listInputs", lists.iter().map(seen::list_input).collect()),
            ("toolExecutions", executions.iter().map(seen::execution).collect::<Done<Vec<_>>>()?.into()),
            ("approvalInputs", asked.into()),
            ("consoleLines", self.complaints.lines().into()),
            ("unusedModelSteps", json!(self.model.unused())),
            ("unusedToolResults", json!(unused)),
        ]))
    }

    fn traced(&self) -> Vec<Value> {
        let Some(trace) = &self.trace else { return Vec::new() };
        let trace = trace.lock();
        let flushed = trace.flushed.then(|| json!({ "type": "<flush>" }));
        trace.trace.told.iter().cloned().chain(flushed).collect()
    }
}

/// Compares all that a turn expects with what was seen.
fn compare(expect: &Map<String, Value>, seen: &BTreeMap<&'static str, Value>, tools: &[&str]) -> Done<()> {
    if let Some(key) = expect.keys().find(|key| !seen.contains_key(key.as_str())) {
        return Err(format!("unknown word `{key}` in expect"));
    }
    ORDER.iter().try_for_each(|key| {
        let absent = if key.starts_with("unused") { json!(0) } else { json!([]) };
        let wanted = expect.get(*key).unwrap_or(&absent);
        let seen = seen.get(key).unwrap_or(&Value::Null);
        let seen = with_placeholders(&comparable(key, seen), tools);
        same(key, &comparable(key, wanted), &seen)
    })
}

/// Returns the compared content of a part.
fn comparable(part: &str, value: &Value) -> Value {
    let each = |change: fn(&Value) -> Value| value.as_array().map(|list| list.iter().map(change).collect());
    let made: Option<Value> = match part {
        "result" => Some(contract(value)),
        "events" => each(event),
        "hookCalls" => each(without_null),
        "modelInputs" => each(|input| without(input, &["continuationId", "continuationState"])),
        "streamEvents" => each(stream_event),
        // The level and the wording of a line are texts for people.
        "consoleLines" => each(|line| json!([null, null, line.get(2)])),
        _ => None,
    };
    made.unwrap_or_else(|| value.clone())
}

fn event(event: &Value) -> Value {
    let mut event = without(event, &["elapsedMs"]);
    event.get_mut("result").into_iter().for_each(unworded);
    event
}

/// The result with only that of its continuation which is the contract.
fn contract(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(continuation) = result.get_mut("continuation") {
        *continuation = only(continuation, CONTINUATION);
        if let Some(state) = continuation.get_mut("state") {
            *state = only(state, STATE);
        }
    }
    result
}

/// A hook that returned nothing is written with and without `returned`.
fn without_null(call: &Value) -> Value {
    let Value::Object(map) = call else { return call.clone() };
    map.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// A stream event with only that of a result which is the contract.
fn stream_event(event: &Value) -> Value {
    let mut event = event.clone();
    if let Some(result) = event.get_mut("result") {
        *result = contract(result);
    }
    event
}

fn round_trip(continuation: &Continuation) -> Done<Continuation> {
    Json::of(continuation).and_then(|json| json.to()).map_err(|e| e.to_string())
}

/// The approvals adapter of the vector.
struct Approvals {
    script: Mutex<VecDeque<Result<Prepared, Fault>>>,
    asked: Mutex<Vec<ApprovalRequest>>,
    abort: Abort,
}

impl Approvals {
    fn of(script: Vec<words::Approval>, abort: &Abort) -> Done<Arc<Self>> {
        let script = script.into_iter().map(convert::prepared).collect::<Done<_>>()?;
        Ok(Arc::new(Self { script: Mutex::new(script), asked: Mutex::default(), abort: abort.clone() }))
    }

    fn asked(&self, origin: &Origin) -> Done<Vec<Value>> {
        let asked = self.asked.lock();
        let input = |request| {
            let request = serde_json::to_value(request).map_err(|e| e.to_string())?;
            Ok(seen::approval_input(origin, request))
        };
        asked.iter().map(input).collect()
    }
}

struct Shared(Arc<Approvals>);

impl Approver for Shared {
    async fn decide(&self, _: ApprovalAsk) -> Decision {
        Decision::Later
    }

    async fn prepare(&self, request: ApprovalRequest) -> Result<Prepared, Fault> {
        self.0.abort.at(Place::Approval);
        self.0.asked.lock().push(request.clone());
        let next = self.0.script.lock().pop_front();
        next.unwrap_or(Ok(Prepared { request, continuation: None }))
    }
}
