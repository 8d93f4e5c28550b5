//! Recordings: what is written, what is replayed, and what is refused.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage, Usage};
use harness_core::port::{
    DeltaPart, Deltas, Model, ModelFault, ModelFaultCode as Code, ModelRequest, PreparedAgent,
};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, canonical};
use harness_record::RecordError;
use harness_record::traffic::{RECORDING_VERSION, Recorder, Replay, request_form};
use parking_lot::Mutex;

const GOLDEN: &str = include_str!("../fixtures/recording-v2.jsonl");
const VERSION_1: &str = include_str!("../fixtures/recording-v1.jsonl");

/// What the model streams, and what it ends with.
struct Step(Vec<DeltaPart>, Result<AssistantMessage, ModelFault>);

/// Takes one step of its script per call.
struct Scripted(Mutex<VecDeque<Step>>);

impl Scripted {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(Mutex::new(steps.into_iter().collect()))
    }
}

impl Model for Scripted {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let Step(parts, end) = self.0.lock().pop_front().expect("a step for each call");
        for part in parts {
            deltas.part(part);
        }
        end
    }
}

/// Keeps the pieces that it is handed.
#[derive(Default)]
struct Pieces(Mutex<Vec<DeltaPart>>);

impl Pieces {
    fn all(&self) -> Vec<DeltaPart> {
        self.0.lock().clone()
    }
}

impl Deltas for Pieces {
    fn part(&self, part: DeltaPart) {
        self.0.lock().push(part);
    }
}

fn request_with<const N: usize>(
    messages: impl IntoIterator<Item = Message>,
    tools: [ToolDef; N],
) -> ModelRequest {
    let log: Transcript = messages.into_iter().map(Arc::new).collect();
    ModelRequest::new(View::whole(log.prefix()), Arc::new(PreparedAgent::new("main", "Be brief.", tools)))
}

fn question(text: &str) -> ModelRequest {
    request_with([Message::user(text)], [])
}

fn call() -> ToolCall {
    ToolCall::new("call_1", "weather", Json::parse(r#"{"city":"Oslo","n":9007199254740993}"#).unwrap())
}

/// The requests of a small run: a question, the tool's result, a follow-up. `late` stands for what
/// differs between two equal runs.
fn requests(late: bool) -> [ModelRequest; 3] {
    let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#).unwrap();
    let tools = || [ToolDef::new("weather", "Current weather.").with_schema(schema.clone())];
    let mut question = Message::user("How cold is Oslo?");
    if let Message::User(user) = &mut question {
        user.timestamp = late.then_some(1_767_225_600_000);
    }
    let mut result = ToolResultMessage::new(&call(), vec![Block::text("4 °C")], false);
    result.duration_ms = late.then_some(17);
    let mut asked = AssistantMessage::calls([call()]);
    asked.usage = late.then(|| Arc::new(Usage::tokens(1, 2)));
    let log = [
        question,
        asked.into(),
        result.into(),
        AssistantMessage::text("4 °C.").into(),
        Message::user("Sure?"),
    ];
    [1, 3, 5].map(|length| request_with(log[..length].to_vec(), tools()))
}

fn script() -> [Step; 3] {
    let name = "weather".into();
    let arguments = DeltaPart::CallArguments { index: 0, text: call().arguments.text().to_owned() };
    let fault = ModelFault { http_status: Some(429), ..ModelFault::new(Code::RateLimited, "slow down") };
    [
        Step(
            vec![DeltaPart::CallStarted { index: 0, id: None, name }, arguments],
            Ok(AssistantMessage::calls([call()]).with_usage(Usage::tokens(10, 5))),
        ),
        Step(vec![DeltaPart::Text("4 °C.".to_owned())], Ok(AssistantMessage::text("4 °C."))),
        Step(Vec::new(), Err(fault.with_partial(AssistantMessage::text("Ye")))),
    ]
}

/// Records the small run to a file and returns what the file holds.
async fn record(path: &Path) -> String {
    let script = Scripted::new(script());
    let recorder = Recorder::create(script, path).unwrap();
    for request in requests(false) {
        let _ = recorder.step(request, &Pieces::default()).await;
    }
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn version_2_is_written_as_it_always_was() {
    let folder = tempfile::tempdir().unwrap();
    let written = record(&folder.path().join("run.jsonl")).await;
    assert_eq!(RECORDING_VERSION, 2, "a new version gets a golden file of its own");
    assert_eq!(written, GOLDEN);
}

#[test]
fn version_1_is_rejected_with_the_way_out() {
    let error = Replay::from_text("old.jsonl", VERSION_1).unwrap_err();
    assert_eq!(error.to_string(), "recording `old.jsonl` has version 1, this program reads version 2");
    assert_eq!(error.hint(), "update the program, or record it again with this one");
}

/// Model that keeps the hash of each request, as a recording has it.
struct Hashing<M>(M, Arc<Mutex<Vec<String>>>);

impl<M: Model> Model for Hashing<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.1.lock().push(canonical::hash(&request_form(&request).unwrap()));
        self.0.step(request, deltas).await
    }
}

#[test]
fn digest_of_a_recording_is_the_request_hash_of_the_run_record() {
    let digests = Arc::default();
    let mut scene = crate::usual();
    scene.model = Arc::new(Hashing(scene.model, Arc::clone(&digests)));
    let record = scene.run().record;
    let hashes: Vec<_> = record.request_fingerprints.iter().map(|entry| entry.request_hash.clone()).collect();
    assert_eq!((3, &*digests.lock()), (hashes.len(), &hashes));
}

#[test]
fn form_of_a_request_keeps_numbers_exact() {
    let form = request_form(&requests(false)[1]).unwrap();
    assert!(form.text().contains(r#""n":9007199254740993"#), "{form}");
}

#[tokio::test]
async fn a_replay_gives_the_same_answers_pieces_and_faults() {
    let replay = Replay::from_text("golden.jsonl", GOLDEN).unwrap();
    for (Step(parts, result), request) in script().into_iter().zip(requests(true)) {
        let pieces = Pieces::default();
        assert_eq!(replay.step(request, &pieces).await, result);
        assert_eq!(pieces.all(), parts);
    }
    assert_eq!(replay.unused(), 0);
    replay.finish().unwrap();
}

/// Replays the golden recording up to `request` number `at` and returns the fault of that one.
async fn mismatch(at: usize, request: ModelRequest) -> String {
    let replay = Replay::from_text("golden.jsonl", GOLDEN).unwrap();
    for request in requests(false).into_iter().take(at) {
        let _ = replay.step(request, &Pieces::default()).await;
    }
    let before = replay.unused();
    let fault = replay.step(request, &Pieces::default()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::Recording, false));
    assert_eq!(replay.unused(), before, "a request that does not fit uses nothing up");
    fault.message
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_told_apart_by_its_first_difference() {
    let tail = "; record it again if the change is intended";
    let tools = || requests(false)[0].prepared.tools.clone();
    let other = |text: &str| {
        let mut out = question(text);
        out.prepared = Arc::new(PreparedAgent::new("main", "Be brief.", tools()));
        out
    };
    assert_eq!(
        mismatch(0, other("How warm is Oslo?")).await,
        format!(
            "step 1 of recording `golden.jsonl` does not match the request: messages[0].content: \
             \"How cold is Oslo?\" → \"How warm is Oslo?\"{tail}"
        )
    );
    assert_eq!(
        mismatch(1, other("How cold is Oslo?")).await,
        format!(
            "step 2 of recording `golden.jsonl` does not match the request: messages[1]: \
             {{\"type\":\"tool_call_item\",\"callId\":\"call_1\",\"name\":\"weather\",\
             \"arguments\":{{\"city\":\"Oslo\",\"n\":9007199254740993}}}} → nothing{tail}"
        )
    );
    let mut renamed = requests(false)[0].clone();
    let settings = Json::parse(r#"{"temperature":0}"#).unwrap();
    let prepared = PreparedAgent::new("other name", "Be brief.", tools());
    renamed.prepared = Arc::new(prepared.with_model(None, Some(settings)));
    assert_eq!(
        mismatch(0, renamed).await,
        format!(
            "step 1 of recording `golden.jsonl` does not match the request: modelSettings.temperature: \
             nothing → 0{tail}"
        )
    );
}

#[tokio::test]
async fn a_run_that_asks_for_more_is_told_so() {
    assert_eq!(
        mismatch(3, question("hello")).await,
        "recording `golden.jsonl` ends after step 3, but the run requested step 4; \
         record it again if the run has changed"
    );
}

#[tokio::test]
async fn unused_steps_are_an_error() {
    let replay = Replay::from_text("golden.jsonl", GOLDEN).unwrap();
    let [first, ..] = requests(false);
    replay.step(first, &Pieces::default()).await.unwrap();
    let fault = replay.finish().unwrap_err();
    assert_eq!(fault.kind(), "recording.unused");
    assert_eq!(fault.to_string(), "recording `golden.jsonl` has 2 unused of 3 exchanges, first unused: 2");
}

#[track_caller]
fn check_refused(text: &str, kind: &str, message: &str) {
    let fault = Replay::from_text("bad.jsonl", text).unwrap_err();
    assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, message));
    assert!(!fault.hint().is_empty());
}

#[test]
fn what_is_no_recording_is_refused_at_its_line() {
    let no_header = "recording `bad.jsonl`, line 1: missing header {\"kind\":\"harness.recording\",…}";
    check_refused("", "recording.line", no_header);
    check_refused("hello\n", "recording.line", no_header);
    check_refused(
        "{\"kind\":\"harness.session\",\"version\":1}\n",
        "recording.line",
        "recording `bad.jsonl`, line 1: the file is a `harness.session`, not a `harness.recording`",
    );
    check_refused(
        "{\"kind\":\"harness.recording\",\"version\":3}\n",
        "recording.version",
        "recording `bad.jsonl` has version 3, this program reads version 2",
    );
    check_refused(
        &GOLDEN.replacen("How cold", "How warm", 1),
        "recording.line",
        "recording `bad.jsonl`, line 2: the request was changed: it does not match its digest",
    );
    check_refused(
        &GOLDEN.replacen("\"step\":2", "\"step\":3", 1),
        "recording.line",
        "recording `bad.jsonl`, line 3: expected step 2, found step 3",
    );
    check_refused(
        &GOLDEN.replacen("\"fault\":", "\"other\":", 1),
        "recording.line",
        "recording `bad.jsonl`, line 4: expected either an answer or an error",
    );
    let torn = &GOLDEN[..GOLDEN.len() - 20];
    assert!(matches!(Replay::from_text("bad.jsonl", torn), Err(RecordError::Invalid { line: Some(4), .. })));
}

#[test]
fn a_missing_file_is_named() {
    let fault = Replay::open("no/such/recording.jsonl").unwrap_err();
    assert_eq!(fault.kind(), "recording.io");
    assert!(fault.to_string().starts_with("cannot read recording `no/such/recording.jsonl`: "), "{fault}");
}

#[tokio::test]
async fn recording_again_replaces_a_recording_but_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    record(&path).await;
    assert_eq!(record(&path).await, GOLDEN);
    std::fs::write(&path, "a letter\n").unwrap();
    let script = Scripted::new([]);
    assert_eq!(Recorder::create(script, &path).unwrap_err().kind(), "recording.line");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a letter\n");
}

#[tokio::test]
async fn each_exchange_is_in_the_file_as_soon_as_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let script = Scripted::new(script());
    let recorder = Recorder::create(script, &path).unwrap();
    for (lines, request) in (2..).zip(requests(false)) {
        let _ = recorder.step(request, &Pieces::default()).await;
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), lines);
    }
}
