//! An execution adapter as a model.

use std::sync::Arc;

use harness_adapters::execution::{
    BackendModel, BackendNote, BackendTool, ExecutionAdapter, ExecutionCapabilities, ExecutionContinuation,
    ExecutionCx, ExecutionErrorCode, ExecutionPart, ExecutionRequest, ExecutionResult, ExecutionStatus,
};
use harness_core::Cancel;
use harness_core::message::{
    AssistantMessage, Block, FinishReason, Message, ModelOutput, Usage, UserMessage,
};
use harness_core::port::{DeltaPart, Ids, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::{CallId, Json, RunId, ToolName};
use parking_lot::Mutex;

use crate::support::{Pieces, request};

struct Numbered;

impl Ids for Numbered {
    fn run_id(&self) -> RunId {
        RunId::from("turn-7")
    }
}

/// Tells its parts, answers with its result, and keeps what it was asked.
#[derive(Clone)]
struct Backend {
    parts: Vec<ExecutionPart>,
    result: ExecutionResult,
    asked: Arc<Mutex<Vec<ExecutionRequest>>>,
}

impl ExecutionAdapter for Backend {
    fn backend_id(&self) -> &'static str {
        "far"
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        ExecutionCapabilities::none()
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        self.asked.lock().push(request);
        for part in &self.parts {
            cx.sink.part(part.clone());
        }
        self.result.clone()
    }
}

impl Backend {
    fn of(result: &str) -> Self {
        let result = Json::parse(result).unwrap().to().unwrap();
        Self { parts: Vec::new(), result, asked: Arc::default() }
    }

    fn telling(mut self, parts: impl IntoIterator<Item = ExecutionPart>) -> Self {
        self.parts.extend(parts);
        self
    }

    async fn step(&self, asked: ModelRequest) -> (Result<AssistantMessage, ModelFault>, Vec<DeltaPart>) {
        let pieces = Pieces::default();
        let model = BackendModel::new(self.clone(), Arc::new(Numbered)).thread("thread-1");
        let answer = model.step(asked, &pieces).await;
        (answer, pieces.all())
    }

    /// What the backend is asked when a model is.
    async fn asks(self, messages: impl IntoIterator<Item = Message>) -> ExecutionRequest {
        self.step(request(messages)).await.0.unwrap();
        let mut asked = self.asked.lock();
        asked.pop().unwrap()
    }
}

const DONE: &str = r#"{"backendId":"far","status":"completed","output":{"text":"done"}}"#;

#[tokio::test]
async fn text_and_tools_become_deltas_and_stay_in_the_message() {
    let call = CallId::from("c1");
    let backend = Backend::of(DONE).telling([
        ExecutionPart::Thinking("hm".to_owned()),
        ExecutionPart::ToolStarted {
            id: call.clone(),
            name: ToolName::from("Bash"),
            input: Json::parse(r#"{"command":"ls"}"#).unwrap(),
        },
        ExecutionPart::ToolFinished { id: call, output: "a.txt".to_owned(), failed: false },
        ExecutionPart::Text("done".to_owned()),
        ExecutionPart::Usage(Usage::tokens(3, 1)),
    ]);
    let (answer, pieces) = backend.step(request([Message::user("go")])).await;
    let answer = answer.unwrap();
    assert_eq!((answer.joined_text().as_str(), answer.output()), ("done", ModelOutput::FinalAnswer));
    assert_eq!(answer.usage.as_deref(), Some(&Usage::tokens(3, 1)));
    assert_eq!(answer.provider.as_deref(), Some("far"));
    assert!(matches!(&answer.content[0], Block::Thinking(block) if block.thinking == "hm"));
    let tools = BackendTool::read(&answer);
    assert_eq!((tools.len(), tools[0].name.as_str(), tools[0].output.as_deref()), (1, "Bash", Some("a.txt")));
    assert_eq!(BackendNote::read(&answer).unwrap().status, "completed");
    let kinds: Vec<_> = pieces.iter().map(|piece| Json::of(piece).unwrap().text().to_owned()).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r#"
    {"thinking":"hm"}
    {"backendToolStarted":{"id":"c1","name":"Bash","input":{"command":"ls"}}}
    {"backendToolFinished":{"id":"c1","output":"a.txt","failed":false}}
    {"text":"done"}
    "#);
    // A message reads the same after it was stored.
    let stored = Json::of(&Message::from(answer.clone())).unwrap().to::<Message>().unwrap();
    assert_eq!(stored, Message::from(answer));
}

#[tokio::test]
async fn a_first_turn_is_told_the_instructions_the_message_and_what_was_said_before() {
    let before = [Message::user("hello"), AssistantMessage::text("hi").into(), Message::user("list them")];
    let asked = Backend::of(DONE).asks(before).await;
    insta::assert_snapshot!(Json::of(&asked).unwrap(), @r#"{"assistantId":"main","turnId":"turn-7","threadId":"thread-1","message":{"id":"turn-7.message","text":"list them"},"instructions":{"systemPrompt":"Be brief."},"context":{"blocks":[{"id":"history-1","label":"user","text":"hello","category":"other"},{"id":"history-2","label":"assistant","text":"hi","category":"other"}]}}"#);
}

fn resumable(result: &str) -> ExecutionResult {
    let mut result: ExecutionResult = Json::parse(result).unwrap().to().unwrap();
    let mut continuation = ExecutionContinuation::default();
    continuation.kind = Some("session".to_owned());
    continuation.state = Json::parse(r#"{"sessionId":"s-1"}"#).ok();
    result.continuation = Some(continuation);
    result
}

#[tokio::test]
async fn a_later_turn_gives_the_continuation_back_and_only_what_is_new() {
    let first = Backend { result: resumable(DONE), ..Backend::of(DONE) };
    let answer = first.step(request([Message::user("hello")])).await.0.unwrap();
    let said = || [Message::user("hello"), answer.clone().into(), Message::user("and now?")];
    let asked = Backend::of(DONE).asks(said()).await;
    assert_eq!((asked.message.text.as_str(), asked.context), ("and now?", None));
    let state = asked.continuation.unwrap().state.unwrap();
    assert_eq!(state.text(), r#"{"sessionId":"s-1"}"#);
    // Nothing new: the backend is told to go on.
    let asked = Backend::of(DONE).asks(said().into_iter().take(2)).await;
    assert_eq!(asked.message.text, "Continue.");
    // Another backend's continuation is of no use.
    let mut other = answer.clone();
    let mut note = BackendNote::read(&other).unwrap();
    "near".clone_into(&mut note.backend_id);
    other.content.push(Block::extension("harness", "backend", Json::of(&note).unwrap()));
    let asked = Backend::of(DONE).asks([Message::user("a"), other.into(), Message::user("b")]).await;
    assert_eq!((asked.continuation, asked.context.unwrap().blocks.len()), (None, 2));
}

#[tokio::test]
async fn attachments_travel() {
    let mut message = UserMessage::text("what is it?");
    message.content.push(Block::image("AAAA", "image/png"));
    let asked = Backend::of(DONE).asks([message.into()]).await;
    let attached = &asked.attachments()[0];
    assert_eq!(
        (attached.kind.as_str(), attached.url.as_deref()),
        ("image/png", Some("data:image/png;base64,AAAA"))
    );
}

#[tokio::test]
async fn a_question_and_a_wish_for_approval_are_told_as_such() {
    let asks = r#"{"backendId":"far","status":"needs_clarification","output":{"text":"which?"}}"#;
    let answer = Backend::of(asks).step(request([Message::user("go")])).await.0.unwrap();
    assert_eq!(answer.output(), ModelOutput::Clarification { question: "which?".to_owned() });
    let waits = r#"{"backendId":"far","status":"awaiting_approval","approvalRequest":{"reason":"rm -r","approvalKey":"k"}}"#;
    let answer = Backend::of(waits).step(request([Message::user("go")])).await.0.unwrap();
    let ModelOutput::ApprovalRequest(wish) = answer.output() else { panic!("{answer:?}") };
    assert_eq!((wish.id.as_str(), wish.summary.as_str()), ("k", "rm -r"));
}

async fn fault(result: &str) -> ModelFault {
    Backend::of(result).step(request([Message::user("go")])).await.0.unwrap_err()
}

#[tokio::test]
async fn what_is_no_answer_is_a_fault_that_says_why() {
    let failed = fault(r#"{"backendId":"far","status":"failed","error":{"code":"timeout","message":"too slow","retryable":true}}"#).await;
    assert_eq!(
        (failed.code, failed.transient, failed.message.as_str()),
        (ModelFaultCode::Timeout, true, "too slow")
    );
    assert_eq!(failed.partial, None);
    let exited = r#"{"backendId":"far","status":"failed","error":{"code":"backend_execution_error","message":"far exited with code 3.","metadata":{"stderr":"out of paper\n"}}}"#;
    assert_eq!(fault(exited).await.message, "far exited with code 3: out of paper");
    let tells = exited.replace("code 3.", "code 3: out of paper");
    assert_eq!(fault(&tells).await.message, "far exited with code 3: out of paper");
    let unsupported = fault(r#"{"backendId":"far","status":"unsupported","error":{"code":"unsupported_capability","message":"No tools."}}"#).await;
    assert_eq!(unsupported.code, ModelFaultCode::Configuration);
    assert_eq!(unsupported.message, "the backend `far` does not support the request: No tools.");
    for (code, expected) in [
        (ExecutionErrorCode::InvalidBackendOutput, ModelFaultCode::Protocol),
        (ExecutionErrorCode::BudgetExceeded, ModelFaultCode::Deferred),
        (ExecutionErrorCode::ToolBridgeError, ModelFaultCode::Provider),
    ] {
        let text = format!(
            r#"{{"backendId":"far","status":"failed","error":{{"code":"{}","message":"x"}}}}"#,
            code.as_str()
        );
        assert_eq!(fault(&text).await.code, expected, "{text}");
    }
}

#[tokio::test]
async fn a_deferred_turn_keeps_what_it_can_go_on_with() {
    let text = r#"{"backendId":"far","status":"deferred","output":{"text":"half"}}"#;
    let backend = Backend { result: resumable(text), ..Backend::of(text) };
    let fault = backend.step(request([Message::user("go")])).await.0.unwrap_err();
    assert_eq!((fault.code, fault.transient), (ModelFaultCode::Deferred, false));
    let partial = fault.partial.unwrap();
    assert_eq!((partial.joined_text().as_str(), &partial.stop_reason), ("half", &FinishReason::Aborted));
    assert!(BackendNote::read(&partial).unwrap().continuation.is_some());
}

#[tokio::test]
async fn an_empty_answer_is_none() {
    let empty = fault(r#"{"backendId":"far","status":"completed","output":{"text":" \n"}}"#).await;
    assert_eq!(
        (empty.code, empty.message.as_str()),
        (ModelFaultCode::Protocol, "the backend `far` gave an empty answer")
    );
    let data = r#"{"backendId":"far","status":"completed","output":{"structured":{"n":1}}}"#;
    let answer = Backend::of(data).step(request([Message::user("go")])).await.0.unwrap();
    assert_eq!(answer.joined_text(), r#"{"n":1}"#);
}

#[tokio::test]
async fn what_is_left_out_is_told() {
    let degraded = r#"{"backendId":"far","status":"completed","output":{"text":"ok"},"degradation":[{"code":"trace_depth_reduced","message":"Less is told.","severity":"warning"}]}"#;
    let tool = harness_core::tool::ToolDef::new("look", "looks");
    let asked = crate::support::request_with([Message::user("go")], [tool]);
    let (answer, pieces) = Backend::of(degraded).step(asked).await;
    assert_eq!(
        pieces,
        [
            DeltaPart::Note("the backend `far` does not have the tools look".to_owned()),
            DeltaPart::Note("degraded: Less is told.".to_owned()),
        ]
    );
    assert_eq!(BackendNote::read(&answer.unwrap()).unwrap().degradation.len(), 1);
}

#[tokio::test]
async fn a_long_history_is_cut_at_its_beginning() {
    let long = "x".repeat(200 << 10);
    let before = [
        Message::user(&long),
        Message::user(&long),
        AssistantMessage::text("ok").into(),
        Message::user("go"),
    ];
    let (backend, model_request) = (Backend::of(DONE), request(before));
    let (_, pieces) = backend.step(model_request).await;
    assert_eq!(
        pieces,
        [DeltaPart::Note("the backend `far` does not receive the oldest messages (1)".to_owned())]
    );
    assert_eq!(backend.asked.lock()[0].context.as_ref().unwrap().blocks.len(), 2);
}

#[tokio::test]
async fn what_a_message_keeps_of_tools_is_bounded() {
    let started = |n: usize| ExecutionPart::ToolStarted {
        id: CallId::from(format!("c{n}")),
        name: ToolName::from("Read"),
        input: Json::string(&"y".repeat(20_000)),
    };
    let output = "é".repeat(10_000);
    let ended = ExecutionPart::ToolFinished { id: CallId::from("c0"), output, failed: true };
    let backend = Backend::of(DONE).telling((0..300).map(started).chain([ended]));
    let answer = backend.step(request([Message::user("go")])).await.0.unwrap();
    let tools = BackendTool::read(&answer);
    assert_eq!((tools.len(), BackendNote::read(&answer).unwrap().tools_left_out), (256, 44));
    assert!(tools[0].input.is_null() && tools[0].failed);
    assert_eq!(tools[0].output.as_ref().unwrap().len(), (8 << 10) + "…".len());
}

#[tokio::test]
async fn a_cancelled_step_is_told_as_cancelled() {
    let text = r#"{"backendId":"far","status":"failed","error":{"code":"other","message":"stopped"}}"#;
    let mut asked = request([Message::user("go")]);
    asked.cancel = Cancel::new();
    asked.cancel.cancel();
    let fault = Backend::of(text).step(asked).await.0.unwrap_err();
    assert_eq!((fault.code, ExecutionStatus::Failed.as_str()), (ModelFaultCode::Cancelled, "failed"));
}
