//! What runs are made from.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{PrepareAsk, Secret, ThinkingLevel};
use harness_core::testing::ScriptedTools;
use harness_core::tool::ToolDef;
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Fault, Json, Origin};
use harness_host::{Params, RootCwd, Secrets};
use harness_runtime::{Instructions, MessageOptions};

use crate::support::{Scripted, Step, builder, config, during, thread_of, thread_with};

#[tokio::test]
async fn changes_hold_from_the_next_run_on() {
    let (thread, model) = thread_of([
        during(|thread| {
            thread.set_instructions("new");
            thread.set_thinking(Some(ThinkingLevel::Low));
            thread.configure(|config| config.model_name = Some("m2".into()));
            thread.set_settings(Json::parse(r#"{"temperature":0}"#).ok());
        }),
        Step::Call("c1"),
        Step::Say("x"),
        Step::Say("y"),
    ]);
    thread.set_instructions("old");
    thread.prompt("one").await.unwrap();
    thread.prompt("two").await.unwrap();
    let of = |at: usize| {
        let request = &model.requests()[at];
        let model = request.prepared.model.as_ref().map(ToString::to_string).unwrap_or_default();
        let settings = request.prepared.settings.as_ref().map(|json| json.text().to_owned());
        (request.prepared.instructions.to_string(), model, request.thinking, settings)
    };
    assert_eq!(of(0), ("old".into(), "m1".into(), None, None));
    assert_eq!(of(1), of(0));
    let settings = Some(r#"{"temperature":0}"#.to_owned());
    assert_eq!(of(2), ("new".into(), "m2".into(), Some(ThinkingLevel::Low), settings));
}

#[tokio::test]
async fn a_built_prompt_sees_what_serves_the_iteration() {
    let (thread, model) = thread_of([Step::Call("c1"), Step::Say("x"), Step::Say("y")]);
    thread.set_tools(Arc::new(ScriptedTools::new([ToolDef::new("t", "")])));
    thread.build_instructions(|info| {
        let tools: Vec<_> = info.tools.iter().map(|def| def.name.as_str()).collect();
        format!("{} {tools:?} {}", info.model.as_ref().unwrap(), info.messages.len())
    });
    thread.prompt("one").await.unwrap();
    thread.prompt("two").await.unwrap();
    let prompts: Vec<_> =
        model.requests().iter().map(|request| request.prepared.instructions.to_string()).collect();
    assert_eq!(prompts, [r#"m1 ["t"] 0"#, r#"m1 ["t"] 3"#, r#"m1 ["t"] 4"#]);
}

#[tokio::test]
async fn a_built_prompt_sees_the_working_folder_and_the_params_of_its_runtime() {
    let model = Scripted::new([Step::Say("x"), Step::Say("y")]);
    let params = Params::new(Json::parse(r#"{"region":"eu"}"#).unwrap());
    let runtime = builder(config(&model)).root_cwd(RootCwd::new("/a")).params(params).build();
    let thread = runtime.thread("t");
    thread.build_instructions(|info| format!("{} {}", info.cwd, info.params.json()));
    thread.prompt("one").await.unwrap();
    assert!(runtime.set_root_cwd("/b") && !runtime.set_root_cwd("/b"));
    thread.prompt("two").await.unwrap();
    let prompts: Vec<_> =
        model.requests().iter().map(|request| request.prepared.instructions.to_string()).collect();
    assert_eq!(prompts, [r#"/a {"region":"eu"}"#, r#"/b {"region":"eu"}"#]);
    assert_eq!(runtime.params().json().text(), r#"{"region":"eu"}"#);
}

#[tokio::test]
async fn only_active_tools_are_offered_and_unknown_names_change_nothing() {
    let (thread, model) = thread_of([Step::Say("x"), Step::Say("y")]);
    let tools = || Arc::new(ScriptedTools::new(["a", "b"].map(|name| ToolDef::new(name, ""))));
    thread.set_tools(tools());
    let error = thread.set_active_tools(["b", "ghost", "spook"]).await.unwrap_err();
    assert_eq!(error.to_string(), "unknown tools: `ghost`, `spook`");
    thread.set_active_tools(["b"]).await.unwrap();
    thread.prompt("go").await.unwrap();
    thread.set_tools(Arc::new(ScriptedTools::new([ToolDef::new("a", "")])));
    assert!(thread.active_tools().await.unwrap().is_empty());
    thread.set_tools(tools());
    assert_eq!(thread.active_tools().await.unwrap(), ["b".into()] as [harness_core::ToolName; 1]);
    thread.set_active_tools([] as [&str; 0]).await.unwrap();
    thread.prompt("go").await.unwrap();
    let offered: Vec<usize> = model.requests().iter().map(|request| request.prepared.tools.len()).collect();
    assert_eq!(offered, [1, 2]);
}

struct Rotating(parking_lot::Mutex<Vec<&'static str>>);

impl Secrets for Rotating {
    async fn key(&self, provider: &str) -> Result<Option<Secret>, Fault> {
        assert_eq!(provider, "prov");
        Ok(self.0.lock().pop().map(Secret::new))
    }
}

#[tokio::test]
async fn law_10_each_request_gets_its_key_and_nothing_shows_it() {
    let (thread, model) = thread_with([Step::Say("x"), Step::Say("y"), Step::Say("z")], |config| {
        (config.provider, config.protocol) = ("prov".into(), Some("chat".into()));
        config.secrets = Some(Arc::new(Rotating(parking_lot::Mutex::new(vec!["", "k1"]))));
    });
    for _ in 0..3 {
        thread.prompt("go").await.unwrap();
    }
    let keys: Vec<_> = model
        .requests()
        .iter()
        .map(|request| request.key.as_ref().map(|key| key.expose().to_owned()))
        .collect();
    assert_eq!(keys, [Some("k1".into()), None, None]);
    assert!(!format!("{:?}", model.requests()).contains("k1"));
}

#[tokio::test]
async fn a_preview_is_the_next_request() {
    let (thread, model) = thread_with([Step::Say("x"), Step::Say("y")], |config| {
        config.convert = Some(Arc::new(|view| {
            let mut kept = Vec::new();
            view.for_each(|message| {
                if message.as_assistant().is_none() {
                    kept.push(Arc::clone(message));
                }
            });
            kept
        }));
    });
    thread.set_instructions("be brief");
    thread.prompt("one").await.unwrap();
    thread.steer(Message::user("s")).unwrap();
    let preview = thread.preview_request([Message::user("two")]).await.unwrap();
    assert_eq!(thread.queue_len(), 1, "nothing was delivered");
    thread.prompt(Message::user("two")).await.unwrap();
    let next = model.requests().pop().unwrap();
    let messages = |request: &harness_core::port::ModelRequest| {
        let mut all = Vec::new();
        request.view.for_each(|message| all.push(Json::of(&**message).unwrap()));
        all
    };
    assert_eq!(messages(&preview), messages(&next));
    assert_eq!((preview.prepared, preview.thinking, preview.key), (next.prepared, next.thinking, next.key));
}

#[tokio::test]
async fn a_model_can_be_asked_outside_of_threads() {
    let model = crate::support::Scripted::new([Step::Say("x")]);
    let runtime = crate::support::builder(crate::support::config(&model)).build();
    let answer = runtime.call_model([Message::user("q")], &Cancel::never()).await.unwrap();
    assert_eq!((answer.joined_text(), runtime.ids().len()), ("x".to_owned(), 0));
}

/// Whether a runtime of descriptor `own` makes the parts of a run under `wanted`.
#[track_caller]
fn check_parts(own: Option<&str>, wanted: Option<&str>, any: bool, expected: Result<(), &str>) {
    let mut config = config(&Scripted::new([]));
    (config.origin.descriptor_hash, config.any_descriptor) = (own.map(Into::into), any);
    let mut origin = Origin::default();
    (origin.thread, origin.descriptor_hash) = (Some("t1".into()), wanted.map(Into::into));
    let parts = builder(config).build().run_parts(&origin, MessageOptions::default());
    let parts = parts.map(|parts| assert!(parts.ports.session.is_none() && parts.ports.steering.is_none()));
    assert_eq!(parts.map_err(|error| error.to_string()), expected.map_err(ToOwned::to_owned));
}

#[test]
fn the_parts_of_a_run_are_those_of_its_descriptor() {
    check_parts(None, None, false, Ok(()));
    check_parts(Some("v1"), Some("v1"), false, Ok(()));
    check_parts(Some("v2"), Some("v1"), true, Ok(()));
    let refused = "thread `t1` was started under descriptor v1, this is v2";
    check_parts(Some("v2"), Some("v1"), false, Err(refused));
}

#[tokio::test]
async fn the_parts_of_a_run_have_its_settings() {
    let mut config = config(&Scripted::new([]));
    config.instructions = Instructions::Built(Arc::new(|info| format!("{} messages", info.messages.len())));
    let parts = builder(config).build().run_parts(&Origin::default(), MessageOptions::default()).unwrap();
    let log: Transcript = [Arc::new(Message::user("Where is it?"))].into_iter().collect();
    let ask = PrepareAsk { agent: None, origin: Arc::default(), iteration: 1, log: log.prefix() };
    let agent = parts.ports.agents.prepare_boxed(&ask).await.unwrap();
    assert_eq!((&*agent.instructions, agent.model), ("1 messages", Some("m1".into())));
}
