//! Answers as types: the schema reaches the model, and an answer that does not match goes back to it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use harness::adapters::chat::ChatModel;
use harness::core::Json;
use harness::core::testing::ScriptedModel;
use harness::descriptor::{TextSource, load_text};
use harness::prelude::*;
use harness::runtime::Typed;
use harness::{BoundGraph, HarnessError};
use parking_lot::Mutex;

use crate::support::{Script, call};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    celsius: i32,
}

async fn asked(model: ScriptedModel, invalid_outputs: u32) -> Typed<Weather> {
    let harness =
        Harness::new(model).limits(|limits| limits.invalid_outputs = invalid_outputs).build().unwrap();
    harness.prompt("How cold is Oslo?").typed::<Weather>().await.unwrap()
}

#[track_caller]
fn check(answer: &Typed<Weather>, expected: &str) {
    let value = match &answer.value {
        Ok(weather) => format!("{}", weather.celsius),
        Err(none) => none.to_string(),
    };
    let messages = answer.report.transcript.iter().map(|message| message.joined_text());
    assert_eq!(format!("{value}\n{}", messages.collect::<Vec<_>>().join("\n")), expected);
}

#[tokio::test]
async fn text_that_matches_is_the_answer() {
    let model = ScriptedModel::new([AssistantMessage::text("{\"celsius\":4}")]);
    let answer = asked(model.clone(), 2).await;
    check(&answer, "4\nHow cold is Oslo?\n{\"celsius\":4}");
    let tools: Vec<String> = model.requests()[0]
        .tools()
        .iter()
        .map(|tool| format!("{} {}", tool.name, tool.input_schema.as_ref().unwrap()))
        .collect();
    assert_eq!(
        tools,
        [
            r#"final_answer {"properties":{"celsius":{"type":"integer"}},"required":["celsius"],"type":"object"}"#
        ]
    );
}

#[tokio::test]
async fn answer_may_come_as_the_call_of_a_tool_or_in_a_code_fence() {
    let called = call("c1", "final_answer", r#"{"celsius":4}"#);
    check(&asked(ScriptedModel::new([called]), 2).await, "4\nHow cold is Oslo?\n{\"celsius\":4}");
    let fenced = AssistantMessage::text("```json\n{\"celsius\":4}\n```");
    check(&asked(ScriptedModel::new([fenced]), 2).await, "4\nHow cold is Oslo?\n{\"celsius\":4}");
}

#[tokio::test]
async fn model_reads_what_is_wrong_and_answers_again() {
    let answers = ["4 °C", r#"{"celsius":"4"}"#, r#"{"celsius":4}"#].map(AssistantMessage::text);
    check(
        &asked(ScriptedModel::new(answers), 3).await,
        "4\nHow cold is Oslo?\n4 °C\n\
         Your last answer could not be used: it is not JSON: trailing characters at line 1 column 3. Answer again, in full.\n\
         {\"celsius\":\"4\"}\n\
         Your last answer could not be used: it does not match its schema: `celsius`: expected integer, found \"4\". \
         Answer again, in full.\n{\"celsius\":4}",
    );
}

#[tokio::test]
async fn run_ends_invalid_output_when_no_answer_matches() {
    let answers = ["{}", r#"{"celsius":"4"}"#].map(AssistantMessage::text);
    let answer = asked(ScriptedModel::new(answers), 2).await;
    assert_eq!(answer.report.reason().as_str(), "invalid_output");
    assert_eq!(answer.report.answer(), "", "no answer counts");
    check(
        &answer,
        "no answer (invalid_output): it does not match its schema: `celsius`: expected integer, found \"4\"\n\
         How cold is Oslo?\n{}\n\
         Your last answer could not be used: it does not match its schema: `celsius`: it is required and missing. \
         Answer again, in full.\n{\"celsius\":\"4\"}",
    );
}

#[tokio::test]
async fn limit_is_no_answer_and_no_error() {
    let harness = Harness::new(Script::new([AssistantMessage::text("4")])).max_iterations(1).build().unwrap();
    let answer = harness.prompt("How cold?").typed::<Weather>().await.unwrap();
    assert_eq!(answer.value.unwrap_err().reason.as_str(), "max_iterations_reached");
}

#[tokio::test]
async fn schema_that_is_none_starts_no_run() {
    let harness = Harness::new(ScriptedModel::new([AssistantMessage::text("4")])).build().unwrap();
    let error = harness.prompt(Prompt::from("Hi").output(Json::parse("7").unwrap())).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        ("runtime.output_schema", "invalid output schema: expected an object")
    );
}

const DESK: &str = "
runtime: { entry_agent: desk }
agents:
  desk: { model: m, instructions: Route., handoffs: [clerk] }
  clerk: { model: m, instructions: Answer., output: clerk.json }
";
const CLERK: &str = r#"{"type":"object","properties":{"euros":{"type":"integer"}},"required":["euros"]}"#;

fn desk() -> BoundGraph {
    let descriptor = TextSource::new(DESK).prompts([("clerk.json", CLERK)]).load().unwrap();
    BoundGraph::bind(&descriptor, Vec::<(String, _)>::new()).unwrap()
}

#[tokio::test]
async fn schema_of_a_descriptor_holds_for_its_agent_and_behind_handoffs() {
    let model = Script::new([
        AssistantMessage::text("Which order?"),
        call("h1", "handoff_to_clerk", "{}"),
        AssistantMessage::text("7 euros"),
        AssistantMessage::text(r#"{"euros":7}"#),
    ]);
    let harness = Harness::new(model).graph(desk()).build().unwrap();
    assert_eq!(harness.prompt("Hello").await.unwrap().answer(), "Which order?", "the desk answers in text");
    assert_eq!(harness.prompt("Order 1042").await.unwrap().answer(), r#"{"euros":7}"#);
}

#[test]
fn descriptor_rejects_an_output_that_is_no_schema() {
    #[track_caller]
    fn check(output: &str, expected: &str) {
        let yaml =
            format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m, output: {output} }} }}");
        let bound = load_text(&yaml).map_err(HarnessError::from);
        let bound = bound.and_then(|descriptor| BoundGraph::bind(&descriptor, Vec::<(String, _)>::new()));
        let built = bound.and_then(|bound| {
            Harness::new(ScriptedModel::new(Vec::<AssistantMessage>::new())).graph(bound).build()
        });
        let error = built.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    check("7", "<inline descriptor>:2:34: agents.a.output must be a mapping");
    check("none.json", "<inline descriptor>:2:34: no text for `none.json` of agents.a in the prompt map");
    check("{ type: objekt }", "invalid `output` of agent `a`: invalid JSON Schema: `type`:");
}

/// Bodies that an endpoint has received.
type Bodies = Arc<Mutex<Vec<serde_json::Value>>>;

async fn completion(
    State((bodies, answers)): State<(Bodies, Arc<Mutex<Vec<&'static str>>>)>,
    body: String,
) -> axum::Json<serde_json::Value> {
    bodies.lock().push(serde_json::from_str(&body).unwrap());
    let answer = answers.lock().remove(0);
    axum::Json(serde_json::json!({
        "id": "1", "object": "chat.completion", "model": "m",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": answer } }],
    }))
}

/// An endpoint of chat completions that gives these answers.
async fn endpoint(answers: &[&'static str]) -> (String, Bodies) {
    let bodies = Bodies::default();
    let state = (Arc::clone(&bodies), Arc::new(Mutex::new(answers.to_vec())));
    let app = Router::new().route("/chat/completions", post(completion)).with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, bodies)
}

#[tokio::test]
async fn provider_with_structured_output_is_sent_the_schema() {
    let (url, bodies) = endpoint(&[r#"{"celsius":4.5}"#, r#"{"celsius":4}"#]).await;
    let model = ChatModel::compatible(url, "m").build().unwrap();
    let harness = Harness::new(model).build().unwrap();
    let answer = harness.prompt("How cold is Oslo?").typed::<Weather>().await.unwrap();
    assert_eq!(answer.value.unwrap(), Weather { celsius: 4 });
    let bodies = bodies.lock();
    insta::assert_snapshot!(bodies[0]["response_format"], @r#"{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"properties":{"celsius":{"type":"integer"}},"type":"object","required":["celsius"],"additionalProperties":false}}}"#);
    assert!(bodies[0].get("tools").is_none());
    let guidance = bodies[1]["messages"][2]["content"].to_string();
    assert!(guidance.contains("`celsius`: expected integer, found 4.5"), "{guidance}");
}

#[tokio::test]
async fn provider_without_structured_output_is_offered_a_tool() {
    let (url, bodies) = endpoint(&[r#"{"celsius":4}"#]).await;
    let model = ChatModel::compatible(url, "m").without_structured_output().build().unwrap();
    let harness = Harness::new(model).build().unwrap();
    let answer = harness.prompt("How cold is Oslo?").typed::<Weather>().await.unwrap();
    assert_eq!(answer.value.unwrap(), Weather { celsius: 4 });
    let bodies = bodies.lock();
    assert!(bodies[0].get("response_format").is_none());
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "final_answer");
}
