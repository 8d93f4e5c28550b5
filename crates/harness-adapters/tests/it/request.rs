//! The body that an endpoint is sent.

use std::sync::Arc;

use harness_adapters::chat::{ChatModel, ChatModelBuilder};
use harness_core::message::{
    AssistantMessage, Block, CustomMessage, FinishReason, Message, SystemMessage, ToolCall, ToolResultMessage,
};
use harness_core::port::{ModelRequest, PreparedAgent};
use harness_core::tool::ToolDef;
use harness_core::{Json, ModelName};
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Reply, Server, request, request_with, step};

async fn sent_by(
    setup: impl FnOnce(ChatModelBuilder) -> ChatModelBuilder,
    request: ModelRequest,
) -> (Value, String) {
    let server = Server::start([Reply::events().delta(r#"{"content":"x"}"#).finish("stop")]).await;
    let builder = ChatModel::openrouter("example/model", "key").base_url(server.url());
    step(&setup(builder).build().unwrap(), request).await.unwrap();
    let seen = server.seen().remove(0);
    (seen.json(), seen.body)
}

/// The messages after the instructions, one a line.
async fn messages(messages: impl IntoIterator<Item = Message>) -> String {
    let (body, _) = sent_by(|builder| builder, request(messages)).await;
    let sent = body["messages"].as_array().unwrap();
    assert_eq!(sent[0], serde_json::json!({ "role": "system", "content": "Be brief." }));
    let lines: Vec<String> = sent[1..].iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "find", Json::parse(r#"{"n":1.10}"#).unwrap())
}

fn asks(calls: impl IntoIterator<Item = ToolCall>) -> AssistantMessage {
    AssistantMessage::calls(calls)
}

fn result(id: &str, content: Vec<Block>) -> Message {
    ToolResultMessage::new(&call(id), content, false).into()
}

/// As this very model would have answered.
fn own(mut message: AssistantMessage) -> AssistantMessage {
    message.provider = Some("openrouter".to_owned());
    message.protocol = Some("openai-completions".to_owned());
    message.model = Some(ModelName::from("example/model"));
    message
}

#[tokio::test]
async fn the_body_has_a_fixed_order_and_exact_numbers() {
    let mut request = request_with([Message::user("hi")], [ToolDef::new("find", "Finds.")]);
    let agent = Json::parse(r#"{"top_p":0.10,"temperature":1}"#).unwrap();
    let prepared = PreparedAgent::new("main", "Be brief.", request.prepared.tools.clone());
    request.prepared = Arc::new(prepared.with_model(Some("example/other".into()), Some(agent)));
    let settings = Json::parse(r#"{"temperature":0,"max_tokens":64}"#).unwrap();
    let (_, body) = sent_by(|builder| builder.settings(settings), request).await;
    assert_snapshot!(body, @r#"{"model":"example/other","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"find","description":"Finds."}}],"tool_choice":"auto","temperature":1,"max_tokens":64,"top_p":0.10,"stream":true,"stream_options":{"include_usage":true}}"#);
}

#[tokio::test]
async fn without_streaming_the_body_speaks_of_no_stream() {
    let (body, _) = sent_by(ChatModelBuilder::without_streaming, request([Message::user("hi")])).await;
    let keys: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["messages", "model"]);
}

#[tokio::test]
async fn only_model_overrides_the_agents_wish() {
    let mut request = request([Message::user("hi")]);
    request.prepared =
        Arc::new(PreparedAgent::new("main", "", []).with_model(Some("example/other".into()), None));
    let (body, _) = sent_by(ChatModelBuilder::only_model, request).await;
    assert_eq!(body["model"], "example/model");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "empty instructions are left out");
}

#[tokio::test]
async fn a_step_without_tools_sends_nothing_about_tools() {
    let mut request = request_with([Message::user("hi")], [ToolDef::new("find", "Finds.")]);
    request.with_tools = false;
    let settings = Json::parse(r#"{"tool_choice":"required","parallel_tool_calls":false}"#).unwrap();
    let (body, _) = sent_by(|builder| builder.settings(settings), request).await;
    for key in ["tools", "tool_choice", "parallel_tool_calls"] {
        assert!(body.get(key).is_none(), "{key}");
    }
}

#[tokio::test]
async fn a_step_without_tools_still_explains_the_calls_of_the_conversation() {
    let log = [asks([call("a")]).into(), result("a", vec![Block::text("1")])];
    let mut request = request_with(log, [ToolDef::new("find", "Finds.")]);
    request.with_tools = false;
    let settings = Json::parse(r#"{"tool_choice":"required"}"#).unwrap();
    let (body, _) = sent_by(|builder| builder.settings(settings), request).await;
    assert_eq!(body["tools"][0]["function"]["name"], "find");
    assert_eq!(body["tool_choice"], "none");
}

#[tokio::test]
async fn calls_and_results_keep_arguments_and_order() {
    let mut raw = call("b");
    raw.raw_arguments = Some(r#"{ "n": 1.10 }"#.to_owned());
    let mut step = asks([call("a"), raw]);
    step.content.insert(0, Block::text("Let me see."));
    let sent = messages([
        Message::user("go"),
        step.into(),
        result("a", vec![Block::text("one"), Block::text("two")]),
        result("b", vec![]),
    ])
    .await;
    assert_snapshot!(sent, @r#"
    {"content":"go","role":"user"}
    {"content":"Let me see.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1.10}","name":"find"},"id":"a","type":"function"},{"function":{"arguments":"{ \"n\": 1.10 }","name":"find"},"id":"b","type":"function"}]}
    {"content":"one\ntwo","role":"tool","tool_call_id":"a"}
    {"content":"","role":"tool","tool_call_id":"b"}
    "#);
}

#[tokio::test]
async fn every_call_is_answered_and_no_result_stands_alone() {
    let sent = messages([
        Message::user("go"),
        asks([call("a"), call("b")]).into(),
        result("b", vec![Block::text("done")]),
        result("stray", vec![Block::text("never asked for")]),
        Message::user("and?"),
    ])
    .await;
    assert_snapshot!(sent, @r#"
    {"content":"go","role":"user"}
    {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1.10}","name":"find"},"id":"a","type":"function"},{"function":{"arguments":"{\"n\":1.10}","name":"find"},"id":"b","type":"function"}]}
    {"content":"No result provided","role":"tool","tool_call_id":"a"}
    {"content":"done","role":"tool","tool_call_id":"b"}
    {"content":"and?","role":"user"}
    "#);
}

#[tokio::test]
async fn answers_in_which_nothing_was_said_are_not_sent() {
    let said = messages([AssistantMessage::text("").into(), Message::user("hi")]).await;
    assert_snapshot!(said, @r#"{"content":"hi","role":"user"}"#);
}

#[tokio::test]
async fn failed_and_cut_answers_are_not_sent_with_their_results() {
    let mut cut = asks([call("a")]);
    cut.stop_reason = FinishReason::Aborted;
    let mut failed = AssistantMessage::text("oops");
    failed.stop_reason = FinishReason::Error;
    let sent = messages([
        Message::user("go"),
        cut.into(),
        result("a", vec![Block::text("not_run")]),
        failed.into(),
        AssistantMessage::default().into(),
        Message::user("again"),
    ])
    .await;
    assert_snapshot!(sent, @r#"
    {"content":"go","role":"user"}
    {"content":"again","role":"user"}
    "#);
}

#[tokio::test]
async fn images_are_parts_and_those_of_results_follow_in_a_user_message() {
    let image = || Block::image("QUJD", "image/png");
    let mut question = Message::user("what is this?");
    if let Message::User(user) = &mut question {
        user.content.push(image());
    }
    let sent =
        messages([question, asks([call("a")]).into(), result("a", vec![image()]), Message::user("so?")])
            .await;
    assert_snapshot!(sent, @r#"
    {"content":[{"text":"what is this?","type":"text"},{"image_url":{"url":"data:image/png;base64,QUJD"},"type":"image_url"}],"role":"user"}
    {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1.10}","name":"find"},"id":"a","type":"function"}]}
    {"content":"(see the attached content below)","role":"tool","tool_call_id":"a"}
    {"content":[{"text":"Attached content of the tool results above:","type":"text"},{"image_url":{"url":"data:image/png;base64,QUJD"},"type":"image_url"}],"role":"user"}
    {"content":"so?","role":"user"}
    "#);
}

#[tokio::test]
async fn a_model_without_eyes_is_told_that_images_are_missing() {
    let mut question = Message::user("what are these?");
    if let Message::User(user) = &mut question {
        user.content.extend([Block::image("QUJD", "image/png"), Block::image("QUJD", "image/png")]);
    }
    let (body, _) = sent_by(ChatModelBuilder::without_images, request([question])).await;
    assert_snapshot!(body["messages"][1]["content"], @r#"[{"text":"what are these?","type":"text"},{"text":"(image omitted: model does not support images)","type":"text"}]"#);
}

#[tokio::test]
async fn custom_messages_are_sent_only_when_they_ask_for_it() {
    let mut custom = CustomMessage::new("note", None);
    custom.content = Some(vec![Block::text("shown to the model")]);
    let hidden = Message::Custom(custom.clone());
    custom.to_model = true;
    let unknown: Block = serde_json::from_str(r#"{"type":"hologram","data":1}"#).unwrap();
    let mut system = SystemMessage::text("Rule.");
    system.content.push(unknown);
    let sent = messages([hidden, Message::Custom(custom), system.into()]).await;
    assert_snapshot!(sent, @r#"
    {"content":"shown to the model","role":"user"}
    {"content":"Rule.","role":"system"}
    "#);
}

#[tokio::test]
async fn reasoning_goes_back_unchanged_to_the_model_that_wrote_it() {
    let mut step = own(asks([call("a")]));
    step.content.insert(0, Block::thinking("Hm."));
    step.provider_metadata =
        Json::parse(r#"{"reasoning_details":[{"type":"reasoning.text","w":1.10}]}"#).ok();
    let request = request([Message::user("go"), step.into(), result("a", vec![Block::text("1")])]);
    let (_, body) = sent_by(|builder| builder, request).await;
    assert!(body.contains(r#""reasoning_details":[{"type":"reasoning.text","w":1.10}]"#), "{body}");
    assert!(!body.contains("Hm."), "the items hold the text: {body}");
}

#[tokio::test]
async fn reasoning_without_items_goes_back_under_its_own_field() {
    let mut step = own(asks([call("a")]));
    let thinking = r#"{"type":"thinking","thinking":"Hm.","field":"reasoning_content"}"#;
    step.content.insert(0, serde_json::from_str(thinking).unwrap());
    let sent = messages([step.into(), result("a", vec![Block::text("1")])]).await;
    assert!(sent.starts_with(r#"{"content":null,"reasoning_content":"Hm.","role":"assistant","#), "{sent}");
}

#[tokio::test]
async fn reasoning_of_another_model_is_sent_as_text() {
    let mut other = own(AssistantMessage::text("Yes."));
    other.model = Some(ModelName::from("example/other"));
    other.content.insert(0, Block::thinking("Hm."));
    other.provider_metadata = Json::parse(r#"{"reasoning_details":[{"type":"reasoning.encrypted"}]}"#).ok();
    let sent = messages([other.into(), Message::user("sure?")]).await;
    assert_snapshot!(sent, @r#"
    {"content":"Hm.\n\nYes.","role":"assistant"}
    {"content":"sure?","role":"user"}
    "#);
}
