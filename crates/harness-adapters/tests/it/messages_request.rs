//! The body that an endpoint of the Messages API is sent.

use std::sync::Arc;

use harness_adapters::OutputSchema;
use harness_adapters::messages::{MessagesModel, MessagesModelBuilder, PromptCache};
use harness_core::message::{
    AssistantMessage, Block, ImageBlock, Message, SystemMessage, ThinkingBlock, ToolCall, ToolResultMessage,
    UserMessage,
};
use harness_core::port::{ModelRequest, PreparedAgent};
use harness_core::tool::ToolDef;
use harness_core::{Json, ModelName};
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{KEY, Reply, Server, request, request_with, step};

const ANSWER: &str =
    r#"{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{}}"#;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

async fn sent_by(
    setup: impl FnOnce(MessagesModelBuilder) -> MessagesModelBuilder,
    request: ModelRequest,
) -> (Value, String) {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    let builder = MessagesModel::anthropic("example-model", KEY).base_url(server.url());
    step(&setup(builder).build().unwrap(), request).await.unwrap();
    let seen = server.seen().remove(0);
    (seen.json(), seen.body)
}

/// The messages as they are sent without cache marks, one a line.
async fn messages(messages: impl IntoIterator<Item = Message>) -> String {
    let (body, _) = sent_by(|builder| builder.prompt_cache(PromptCache::Off), request(messages)).await;
    let lines: Vec<String> = body["messages"].as_array().unwrap().iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// What settings become in the body, its other fields left out.
async fn settings(settings: &str) -> String {
    let request = request_with([Message::user("hi")], [ToolDef::new("find.it", "Finds.")]);
    let setup = |builder: MessagesModelBuilder| builder.settings(json(settings));
    let (mut body, _) = sent_by(setup, request).await;
    for key in ["model", "system", "messages", "tools", "stream"] {
        body.as_object_mut().unwrap().remove(key).unwrap();
    }
    body.sort_all_objects();
    body.to_string()
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "find", json(r#"{"n":1.10}"#))
}

fn result(id: &str, content: Vec<Block>, is_error: bool) -> Message {
    ToolResultMessage::new(&call(id), content, is_error).into()
}

fn user(content: Vec<Block>) -> Message {
    let mut user = UserMessage::default();
    user.content = content;
    user.into()
}

/// As this very model would have answered.
fn own(mut message: AssistantMessage) -> AssistantMessage {
    message.provider = Some("anthropic".to_owned());
    message.protocol = Some("anthropic-messages".to_owned());
    message.model = Some(ModelName::from("example-model"));
    message
}

fn thought(text: &str, signature: Option<&str>, redacted: bool) -> Block {
    let mut block = ThinkingBlock::new(text);
    block.thinking_signature = signature.map(str::to_owned);
    block.redacted = redacted.then_some(true);
    block.into()
}

#[tokio::test]
async fn the_head_names_key_and_version() {
    let server = Server::start([Reply::json(200, ANSWER)]).await;
    let model = MessagesModel::anthropic("example-model", KEY).base_url(server.url());
    let model = model.header("anthropic-beta", "one,two").build().unwrap();
    step(&model, request([Message::user("hi")])).await.unwrap();
    let seen = server.seen().remove(0);
    assert_eq!(seen.target, "POST /api/v1/messages");
    for (name, value) in [
        ("x-api-key", Some(KEY)),
        ("authorization", None),
        ("anthropic-version", Some("2023-06-01")),
        ("anthropic-beta", Some("one,two")),
        ("content-type", Some("application/json")),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn the_body_has_a_fixed_order_and_marks_its_stable_beginning() {
    let mut find = ToolDef::new("find.it", "Finds.");
    find.input_schema = Some(json(r#"{"type":"object","properties":{"n":{"maximum":1.10}}}"#));
    let log = [
        Message::System(SystemMessage::text("Rule.")),
        Message::user("hi"),
        AssistantMessage::calls([call("a")]).into(),
        result("a", vec![Block::text("one")], false),
    ];
    let mut request = request_with(log, [find, ToolDef::new("plain", "")]);
    let agent = json(r#"{"top_p":0.10,"temperature":1}"#);
    let prepared = PreparedAgent::new("main", "Be brief.", request.prepared.tools.clone());
    request.prepared = Arc::new(prepared.with_model(Some("other-model".into()), Some(agent)));
    let (_, body) = sent_by(|builder| builder.settings(json(r#"{"temperature":0}"#)), request).await;
    assert_snapshot!(body, @r#"{"model":"other-model","max_tokens":8192,"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Rule.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"find","input":{"n":1.10}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one"}],"cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"find_it","description":"Finds.","input_schema":{"type":"object","properties":{"n":{"maximum":1.10}}}},{"name":"plain","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"temperature":1,"top_p":0.10,"stream":true}"#);
}

#[tokio::test]
async fn the_cache_lasts_as_asked() {
    let (body, _) =
        sent_by(|builder| builder.prompt_cache(PromptCache::OneHour), request([Message::user("hi")])).await;
    let mark = serde_json::json!({ "type": "ephemeral", "ttl": "1h" });
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
    for setup in [
        (|builder| builder.prompt_cache(PromptCache::Off))
            as fn(MessagesModelBuilder) -> MessagesModelBuilder,
        |builder| builder.settings(json(r#"{"cache_control":{"type":"ephemeral"}}"#)),
    ] {
        let (body, _) = sent_by(setup, request([Message::user("hi")])).await;
        assert!(!body["messages"].to_string().contains("cache_control"));
        assert!(!body["system"].to_string().contains("cache_control"));
    }
}

#[tokio::test]
async fn there_are_never_more_than_four_marks() {
    let mut log = Vec::new();
    for round in 0..5 {
        log.push(Message::System(SystemMessage::text(format!("rule {round}"))));
        log.push(Message::user("go"));
        log.push(AssistantMessage::text("done").into());
    }
    log.push(Message::user("last"));
    let (_, body) = sent_by(|builder| builder, request_with(log, [ToolDef::new("find", "")])).await;
    assert_eq!(body.matches("cache_control").count(), 4);
}

#[tokio::test]
async fn results_and_what_the_user_says_next_are_one_message() {
    let mut answer = AssistantMessage::calls([call("a"), call("b.1")]);
    answer.content.insert(0, Block::text("Let me see."));
    let sent = messages([
        Message::user("go"),
        answer.into(),
        result("b.1", vec![Block::image("AAAA", "image/png")], false),
        Message::System(SystemMessage::text("Hurry.")),
        Message::user("and?"),
        Message::user("  "),
    ])
    .await;
    assert_snapshot!(sent, @r#"
    {"content":[{"text":"go","type":"text"}],"role":"user"}
    {"content":[{"text":"Let me see.","type":"text"},{"id":"a","input":{"n":1.1},"name":"find","type":"tool_use"},{"id":"b_1","input":{"n":1.1},"name":"find","type":"tool_use"}],"role":"assistant"}
    {"content":[{"content":[{"text":"No result provided","type":"text"}],"is_error":true,"tool_use_id":"a","type":"tool_result"},{"content":[{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"b_1","type":"tool_result"},{"text":"<system>\nHurry.\n</system>","type":"text"},{"text":"and?","type":"text"}],"role":"user"}
    "#);
}

#[tokio::test]
async fn reasoning_goes_back_to_its_model_as_it_came() {
    let mut hosted = ToolCall::new("s1", "web_search", Json::empty_object());
    hosted.hosted = Some(json(r#"{"type":"server_tool_use","id":"s1","n":1.10}"#));
    let mut answer = own(AssistantMessage::calls([call("a")]));
    let before = vec![
        thought("Hm 🤔", Some("EqQB+/=="), false),
        thought("[withheld]", Some("Emw="), true),
        thought("unsigned", None, false),
        Block::from(hosted),
        Block::text("Yes."),
    ];
    answer.content.splice(0..0, before);
    let mut foreign = answer.clone();
    foreign.model = Some(ModelName::from("other-model"));
    let log = |answer: AssistantMessage| [Message::user("go"), answer.into(), result("a", vec![], true)];
    assert_snapshot!(messages(log(answer)).await, @r#"
    {"content":[{"text":"go","type":"text"}],"role":"user"}
    {"content":[{"signature":"EqQB+/==","thinking":"Hm 🤔","type":"thinking"},{"data":"Emw=","type":"redacted_thinking"},{"text":"unsigned","type":"text"},{"id":"s1","n":1.1,"type":"server_tool_use"},{"text":"Yes.","type":"text"},{"id":"a","input":{"n":1.1},"name":"find","type":"tool_use"}],"role":"assistant"}
    {"content":[{"is_error":true,"tool_use_id":"a","type":"tool_result"}],"role":"user"}
    "#);
    assert_snapshot!(messages(log(foreign)).await, @r#"
    {"content":[{"text":"go","type":"text"}],"role":"user"}
    {"content":[{"text":"Hm 🤔","type":"text"},{"text":"unsigned","type":"text"},{"text":"Yes.","type":"text"},{"id":"a","input":{"n":1.1},"name":"find","type":"tool_use"}],"role":"assistant"}
    {"content":[{"is_error":true,"tool_use_id":"a","type":"tool_result"}],"role":"user"}
    "#);
}

#[tokio::test]
async fn images_and_documents_are_sent_by_value_or_by_reference() {
    let image = |url: Option<&str>, id: Option<&str>| {
        if url.is_none() && id.is_none() {
            return Block::image("AAAA", "image/webp");
        }
        let mut image = ImageBlock::default();
        (image.url, image.file_id) = (url.map(str::to_owned), id.map(str::to_owned));
        image.mime_type = Some("image/webp".to_owned());
        image.into()
    };
    let file = |json_text: &str| -> Block { json(json_text).to().unwrap() };
    let sent = messages([user(vec![
        image(None, None),
        image(Some("https://example.com/a.png"), None),
        image(Some("data:image/gif;base64,R0lG"), None),
        image(None, Some("file_1")),
        file(r#"{"type":"file","data":"JVBE","mimeType":"application/pdf","name":"a.pdf"}"#),
        file(r#"{"type":"file","url":"https://example.com/b.pdf"}"#),
        file(r#"{"type":"file","fileId":"file_2"}"#),
        file(r#"{"type":"file","data":"aMOp","mimeType":"text/markdown","name":"c.md"}"#),
        file(r#"{"type":"file","data":"AAAA","mimeType":"application/zip","name":"d.zip"}"#),
        file(r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#),
        file(r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav","transcript":"hello"}"#),
    ])])
    .await;
    assert_snapshot!(sent, @r#"{"content":[{"source":{"data":"AAAA","media_type":"image/webp","type":"base64"},"type":"image"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"},{"source":{"data":"R0lG","media_type":"image/gif","type":"base64"},"type":"image"},{"source":{"file_id":"file_1","type":"file"},"type":"image"},{"source":{"data":"JVBE","media_type":"application/pdf","type":"base64"},"title":"a.pdf","type":"document"},{"source":{"type":"url","url":"https://example.com/b.pdf"},"type":"document"},{"source":{"file_id":"file_2","type":"file"},"type":"document"},{"source":{"data":"hé","media_type":"text/plain","type":"text"},"title":"c.md","type":"document"},{"text":"(file d.zip omitted: model does not support application/zip)","type":"text"},{"text":"(audio omitted: model does not support audio)","type":"text"},{"text":"hello","type":"text"}],"role":"user"}"#);
    let images = [user(vec![image(None, None), image(None, None), Block::text("see")])];
    let (body, _) = sent_by(MessagesModelBuilder::without_images, request(images)).await;
    let omitted = "(image omitted: model does not support images)";
    assert_eq!(body["messages"][0]["content"][0]["text"], omitted);
    assert_eq!(body["messages"][0]["content"][1]["text"], "see");
}

#[tokio::test]
async fn settings_are_understood_in_either_vocabulary() {
    assert_snapshot!(settings("{}").await, @r#"{"max_tokens":8192}"#);
    assert_snapshot!(settings(r#"{"max_tokens":7,"thinking":{"type":"enabled","budget_tokens":2000}}"#).await, @r#"{"max_tokens":7,"thinking":{"budget_tokens":2000,"type":"enabled"}}"#);
    assert_snapshot!(settings(r#"{"max_completion_tokens":7,"stop":"END","user":"ann"}"#).await, @r#"{"max_tokens":7,"metadata":{"user_id":"ann"},"stop_sequences":["END"]}"#);
    assert_snapshot!(settings(r#"{"reasoning":{"max_tokens":2000,"effort":"high"}}"#).await, @r#"{"max_tokens":10192,"output_config":{"effort":"high"},"thinking":{"budget_tokens":2000,"type":"enabled"}}"#);
    assert_snapshot!(settings(r#"{"reasoning_effort":"minimal","output_config":{"task":1}}"#).await, @r#"{"max_tokens":8192,"output_config":{"effort":"low","task":1}}"#);
    assert_snapshot!(settings(r#"{"tool_choice":"required","parallel_tool_calls":false}"#).await, @r#"{"max_tokens":8192,"tool_choice":{"disable_parallel_tool_use":true,"type":"any"}}"#);
    assert_snapshot!(settings(r#"{"tool_choice":{"type":"function","function":{"name":"find.it"}}}"#).await, @r#"{"max_tokens":8192,"tool_choice":{"name":"find_it","type":"tool"}}"#);
    assert_snapshot!(settings(r#"{"tool_choice":{"type":"tool","name":"find_it"},"stop":["a","b"]}"#).await, @r#"{"max_tokens":8192,"stop_sequences":["a","b"],"tool_choice":{"name":"find_it","type":"tool"}}"#);
    assert_snapshot!(settings(r#"{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}"#).await, @r#"{"max_tokens":8192,"output_config":{"format":{"schema":{"type":"object"},"type":"json_schema"}}}"#);
    assert_snapshot!(settings(r#"{"response_format":{"type":"json_object"}}"#).await, @r#"{"max_tokens":8192,"response_format":{"type":"json_object"}}"#);
}

#[tokio::test]
async fn an_answer_of_a_schema_is_asked_for() {
    let schema = || json(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#);
    let setup = |builder: MessagesModelBuilder| {
        let builder = builder.output_schema(OutputSchema::new("count", schema()).lenient());
        builder.settings(json(r#"{"output_config":{"effort":"low"}}"#))
    };
    let (body, _) = sent_by(setup, request([Message::user("hi")])).await;
    assert_eq!(
        body["output_config"].to_string(),
        r#"{"effort":"low","format":{"schema":{"properties":{"n":{"type":"integer"}},"type":"object"},"type":"json_schema"}}"#
    );
    let (body, _) = sent_by(|builder| builder.output_schema(schema()), request([Message::user("hi")])).await;
    let strict = &body["output_config"]["format"]["schema"];
    assert_eq!(strict["additionalProperties"], false);
}

#[tokio::test]
async fn a_step_without_tools_explains_the_calls_of_the_conversation() {
    let log = [AssistantMessage::calls([call("a")]).into(), result("a", vec![Block::text("1")], false)];
    let mut request = request_with(log, [ToolDef::new("find", "Finds.")]);
    request.with_tools = false;
    let setup = |builder: MessagesModelBuilder| builder.settings(json(r#"{"tool_choice":"required"}"#));
    let (body, _) = sent_by(setup, request).await;
    assert_eq!(body["tools"][0]["name"], "find");
    assert_eq!(body["tool_choice"].to_string(), r#"{"type":"none"}"#);

    let mut request = request_with([Message::user("hi")], [ToolDef::new("find", "Finds.")]);
    request.with_tools = false;
    let setup = |builder: MessagesModelBuilder| builder.settings(json(r#"{"tool_choice":"required"}"#));
    let (body, _) = sent_by(setup, request).await;
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
}

#[tokio::test]
async fn settings_that_the_adapter_writes_are_refused() {
    for key in ["model", "messages", "system", "tools", "stream"] {
        let settings = json(&format!(r#"{{"{key}":1}}"#));
        let fault = MessagesModel::anthropic("m", KEY).settings(settings).build().unwrap_err();
        assert_eq!(fault.kind(), "adapter.reserved_setting", "{key}");
        assert!(!format!("{fault:?}").contains(KEY));
    }
}

#[tokio::test]
async fn an_answer_is_never_the_end_of_a_request() {
    let said = messages([Message::user("Count."), AssistantMessage::text("One.").into()]).await;
    assert_snapshot!(said, @r#"
    {"content":[{"text":"Count.","type":"text"}],"role":"user"}
    {"content":[{"text":"One.","type":"text"}],"role":"assistant"}
    {"content":[{"text":"Continue.","type":"text"}],"role":"user"}
    "#);
}
