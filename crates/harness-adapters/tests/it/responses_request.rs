//! The body that an endpoint of the Responses API is sent.

use std::sync::Arc;

use harness_adapters::OutputSchema;
use harness_adapters::responses::{ResponsesModel, ResponsesModelBuilder};
use harness_core::message::{
    AssistantMessage, Block, Message, SystemMessage, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage,
    UserMessage,
};
use harness_core::port::{ModelRequest, PreparedAgent};
use harness_core::tool::ToolDef;
use harness_core::{Json, ModelName};
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{KEY, Reply, Server, request, request_with, step};

const ANSWER: &str = concat!(
    r#"{"object":"response","status":"completed","#,
    r#""output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}"#
);

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

async fn sent_by(
    setup: impl FnOnce(ResponsesModelBuilder) -> ResponsesModelBuilder,
    request: ModelRequest,
) -> (Value, String) {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    let builder = ResponsesModel::openai("example-model", KEY).base_url(server.url());
    step(&setup(builder).build().unwrap(), request).await.unwrap();
    let seen = server.seen().remove(0);
    (seen.json(), seen.body)
}

/// The items as they are sent, one a line.
async fn items(messages: impl IntoIterator<Item = Message>) -> String {
    let (body, _) = sent_by(|builder| builder, request(messages)).await;
    let lines: Vec<String> = body["input"].as_array().unwrap().iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// What settings become in the body, its other fields left out.
async fn settings(settings: &str) -> String {
    let request = request_with([Message::user("hi")], [ToolDef::new("find.it", "Finds.")]);
    let setup = |builder: ResponsesModelBuilder| builder.settings(json(settings));
    let (mut body, _) = sent_by(setup, request).await;
    for key in ["model", "instructions", "input", "tools", "stream"] {
        body.as_object_mut().unwrap().remove(key).unwrap();
    }
    body.sort_all_objects();
    body.to_string()
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "find", json(r#"{"n":1.10}"#))
}

fn result(id: &str, content: Vec<Block>) -> Message {
    ToolResultMessage::new(&call(id), content, false).into()
}

/// As this very model would have answered.
fn own(mut message: AssistantMessage) -> AssistantMessage {
    message.provider = Some("openai".to_owned());
    message.protocol = Some("openai-responses".to_owned());
    message.model = Some(ModelName::from("example-model"));
    message
}

#[tokio::test]
async fn the_body_has_a_fixed_order_and_nothing_is_stored() {
    let mut find = ToolDef::new("find.it", "Finds.");
    find.input_schema = Some(json(r#"{"type":"object","properties":{"n":{"maximum":1.10}}}"#));
    let log = [Message::user("hi"), Message::System(SystemMessage::text("Rule."))];
    let mut request = request_with(log, [find, ToolDef::new("plain", "")]);
    let agent = json(r#"{"top_p":0.10,"temperature":1}"#);
    let prepared = PreparedAgent::new("main", "Be brief.", request.prepared.tools.clone());
    request.prepared = Arc::new(prepared.with_model(Some("other-model".into()), Some(agent)));
    let (_, body) = sent_by(|builder| builder.settings(json(r#"{"temperature":0}"#)), request).await;
    assert_snapshot!(body, @r#"{"model":"other-model","instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"Rule."}]}],"tools":[{"type":"function","name":"find_it","description":"Finds.","parameters":{"type":"object","properties":{"n":{"maximum":1.10}}},"strict":false},{"type":"function","name":"plain","parameters":null,"strict":false}],"temperature":1,"top_p":0.10,"store":false,"include":["reasoning.encrypted_content"],"stream":true}"#);
}

#[tokio::test]
async fn the_head_carries_the_key() {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    for builder in [ResponsesModel::openai("m", KEY), ResponsesModel::openrouter("m", KEY)] {
        step(&builder.base_url(server.url()).build().unwrap(), request([Message::user("hi")])).await.unwrap();
    }
    for seen in server.seen() {
        assert_eq!(seen.target, "POST /api/v1/responses");
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

#[tokio::test]
async fn calls_and_results_keep_order_and_arguments() {
    let mut raw = call("b");
    raw.raw_arguments = Some(r#"{ "n": 1.10 }"#.to_owned());
    let mut answer = AssistantMessage::calls([call("a"), raw, call("c")]);
    answer.content.insert(0, Block::text("Let me see."));
    answer.content.insert(1, Block::thinking("Hm."));
    let sent = items([
        Message::user("go"),
        answer.into(),
        result("b", vec![Block::text("one"), Block::image("AAAA", "image/png")]),
        result("a", vec![Block::text("one"), Block::text("two")]),
        Message::user("and?"),
    ])
    .await;
    assert_snapshot!(sent, @r#"
    {"content":[{"text":"go","type":"input_text"}],"role":"user","type":"message"}
    {"content":[{"annotations":[],"text":"Let me see.","type":"output_text"},{"annotations":[],"text":"Hm.","type":"output_text"}],"id":"msg_1","role":"assistant","status":"completed","type":"message"}
    {"arguments":"{\"n\":1.10}","call_id":"a","name":"find","type":"function_call"}
    {"arguments":"{ \"n\": 1.10 }","call_id":"b","name":"find","type":"function_call"}
    {"arguments":"{\"n\":1.10}","call_id":"c","name":"find","type":"function_call"}
    {"call_id":"a","output":"one\ntwo","type":"function_call_output"}
    {"call_id":"b","output":[{"text":"one","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,AAAA","type":"input_image"}],"type":"function_call_output"}
    {"call_id":"c","output":"No result provided","type":"function_call_output"}
    {"content":[{"text":"and?","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[tokio::test]
async fn items_go_back_to_their_model_as_they_came() {
    let item =
        r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA+/==","summary":[],"weight":1.10}"#;
    let mut thought = ThinkingBlock::new("Hm 🤔");
    thought.id = Some("rs_1".to_owned());
    thought.thinking_signature = Some(item.to_owned());
    let text = |text: &str, id: &str| {
        let mut block = TextBlock::new(text);
        block.item_id = Some(id.to_owned());
        block.phase = Some("commentary".to_owned());
        block.annotations = Some(vec![json(r#"{"type":"url_citation"}"#)]);
        Block::from(block)
    };
    let mut hosted = ToolCall::new("ws_1", "web_search_call", Json::empty_object());
    hosted.hosted = Some(json(r#"{"id":"ws_1","type":"web_search_call","n":1.10}"#));
    let mut own_call = call("a");
    own_call.item_id = Some("fc_1".to_owned());
    own_call.status = Some("completed".to_owned());
    let mut answer = own(AssistantMessage::calls([own_call]));
    let before = vec![
        thought.into(),
        hosted.into(),
        text("One.", "msg_1"),
        text("Two.", "msg_1"),
        text("Three.", "msg_2"),
    ];
    answer.content.splice(0..0, before);
    let mut foreign = answer.clone();
    foreign.protocol = Some("openai-completions".to_owned());
    let log = |answer: AssistantMessage| [Message::user("go"), answer.into(), result("a", vec![])];
    let (_, body) = sent_by(|builder| builder, request(log(answer.clone()))).await;
    assert!(body.contains(item), "byte for byte: {body}");
    assert_snapshot!(items(log(answer)).await, @r#"
    {"content":[{"text":"go","type":"input_text"}],"role":"user","type":"message"}
    {"encrypted_content":"gAAA+/==","id":"rs_1","summary":[],"type":"reasoning","weight":1.1}
    {"id":"ws_1","n":1.1,"type":"web_search_call"}
    {"content":[{"annotations":[{"type":"url_citation"}],"text":"One.","type":"output_text"},{"annotations":[{"type":"url_citation"}],"text":"Two.","type":"output_text"}],"id":"msg_1","phase":"commentary","role":"assistant","status":"completed","type":"message"}
    {"content":[{"annotations":[{"type":"url_citation"}],"text":"Three.","type":"output_text"}],"id":"msg_2","phase":"commentary","role":"assistant","status":"completed","type":"message"}
    {"arguments":"{\"n\":1.10}","call_id":"a","id":"fc_1","name":"find","status":"completed","type":"function_call"}
    {"call_id":"a","output":"","type":"function_call_output"}
    "#);
    assert_snapshot!(items(log(foreign)).await, @r#"
    {"content":[{"text":"go","type":"input_text"}],"role":"user","type":"message"}
    {"content":[{"annotations":[],"text":"Hm 🤔","type":"output_text"},{"annotations":[],"text":"One.","type":"output_text"},{"annotations":[],"text":"Two.","type":"output_text"},{"annotations":[],"text":"Three.","type":"output_text"}],"id":"msg_1","role":"assistant","status":"completed","type":"message"}
    {"arguments":"{\"n\":1.10}","call_id":"a","name":"find","type":"function_call"}
    {"call_id":"a","output":"","type":"function_call_output"}
    "#);
}

#[tokio::test]
async fn images_files_and_sound_are_sent_by_value_or_by_reference() {
    let block = |text: &str| -> Block { json(text).to().unwrap() };
    let mut user = UserMessage::default();
    user.content = vec![
        block(r#"{"type":"image","data":"AAAA","mimeType":"image/webp","detail":"low"}"#),
        block(r#"{"type":"image","url":"https://example.com/a.png"}"#),
        block(r#"{"type":"image","fileId":"file_1"}"#),
        block(r#"{"type":"file","data":"JVBE","mimeType":"application/pdf","name":"a.pdf"}"#),
        block(r#"{"type":"file","url":"https://example.com/b.pdf"}"#),
        block(r#"{"type":"file","fileId":"file_2"}"#),
        block(r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#),
        block(r#"{"type":"audio","url":"https://example.com/c.mp3","mimeType":"audio/mp3"}"#),
    ];
    assert_snapshot!(items([user.into()]).await, @r#"{"content":[{"detail":"low","image_url":"data:image/webp;base64,AAAA","type":"input_image"},{"detail":"auto","image_url":"https://example.com/a.png","type":"input_image"},{"detail":"auto","file_id":"file_1","type":"input_image"},{"file_data":"data:application/pdf;base64,JVBE","filename":"a.pdf","type":"input_file"},{"file_url":"https://example.com/b.pdf","type":"input_file"},{"file_id":"file_2","type":"input_file"},{"input_audio":{"data":"AAAA","format":"wav"},"type":"input_audio"},{"text":"(audio omitted: it cannot be sent by reference)","type":"input_text"}],"role":"user","type":"message"}"#);
}

#[tokio::test]
async fn settings_are_understood_in_either_vocabulary() {
    assert_snapshot!(settings("{}").await, @r#"{"include":["reasoning.encrypted_content"],"store":false}"#);
    assert_snapshot!(settings(r#"{"store":true,"include":[],"max_tokens":7}"#).await, @r#"{"include":[],"max_output_tokens":7,"store":true}"#);
    assert_snapshot!(settings(r#"{"max_output_tokens":5,"max_completion_tokens":7}"#).await, @r#"{"include":["reasoning.encrypted_content"],"max_output_tokens":5,"store":false}"#);
    assert_snapshot!(settings(r#"{"reasoning_effort":"low","reasoning":{"summary":"auto"}}"#).await, @r#"{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"store":false}"#);
    assert_snapshot!(settings(r#"{"tool_choice":{"type":"function","function":{"name":"find.it"}},"verbosity":"low"}"#).await, @r#"{"include":["reasoning.encrypted_content"],"store":false,"text":{"verbosity":"low"},"tool_choice":{"name":"find_it","type":"function"}}"#);
    assert_snapshot!(settings(r#"{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}}"#).await, @r#"{"include":["reasoning.encrypted_content"],"store":false,"text":{"format":{"name":"n","schema":{"type":"object"},"strict":true,"type":"json_schema"}}}"#);
    assert_snapshot!(settings(r#"{"response_format":{"type":"json_object"},"parallel_tool_calls":false}"#).await, @r#"{"include":["reasoning.encrypted_content"],"parallel_tool_calls":false,"store":false,"text":{"format":{"type":"json_object"}}}"#);
}

#[tokio::test]
async fn an_answer_of_a_schema_is_asked_for() {
    let schema = OutputSchema::new("city", json(r#"{"type":"object"}"#)).lenient();
    let setup = |builder: ResponsesModelBuilder| builder.output_schema(schema);
    let (body, _) = sent_by(setup, request([Message::user("hi")])).await;
    let expected =
        r#"{"format":{"name":"city","schema":{"type":"object"},"strict":false,"type":"json_schema"}}"#;
    assert_eq!(body["text"].to_string(), expected);
}

#[tokio::test]
async fn a_step_without_tools_explains_the_calls_of_the_conversation() {
    let log = [AssistantMessage::calls([call("a")]).into(), result("a", vec![Block::text("1")])];
    let choice = |builder: ResponsesModelBuilder| builder.settings(json(r#"{"tool_choice":"required"}"#));
    let mut with_calls = request_with(log, [ToolDef::new("find", "Finds.")]);
    with_calls.with_tools = false;
    let (body, _) = sent_by(choice, with_calls).await;
    assert_eq!(
        (body["tools"][0]["name"].as_str(), body["tool_choice"].as_str()),
        (Some("find"), Some("none"))
    );

    let mut without = request_with([Message::user("hi")], [ToolDef::new("find", "Finds.")]);
    without.with_tools = false;
    let (body, _) = sent_by(choice, without).await;
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
}
