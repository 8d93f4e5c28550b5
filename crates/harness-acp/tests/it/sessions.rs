//! Sessions: beside each other, again, and over.

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest, ResumeSessionRequest,
    SessionId, SetSessionModeRequest, StopReason,
};
use harness::core::ThreadId;
use harness::core::message::UserMessage;
use harness::tools::Modes;
use harness_acp::{Host, HostFault, Opened, SessionHead, SessionSetup, Threads};
use std::sync::Arc;

use crate::support::{Counted, Cupboard, Scripted, Step, call, config, runtime, threads, with_editor};

#[tokio::test]
async fn two_sessions_work_side_by_side() {
    let model = Scripted::new([call("c1", "slow", "{}"), Step::Say("quick"), Step::Say("later")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let (slow, quick) = (editor.session().await, editor.session().await);
        assert_ne!(slow, quick);
        let beside = async {
            editor.until(&slow, "c1 in_progress").await;
            assert_eq!(editor.prompt(&quick, "go").await.unwrap(), StopReason::EndTurn);
            editor.cancel(&slow);
        };
        let (stopped, ()) = tokio::join!(editor.prompt(&slow, "go"), beside);
        assert_eq!(stopped.unwrap(), StopReason::Cancelled);
        assert_eq!(editor.lines(&quick), ["m1 says qui", "m1 says ck"]);
        assert!(editor.lines(&slow).iter().all(|line| !line.contains("qui")));
    })
    .await;
}

#[tokio::test]
async fn a_session_answers_one_prompt_at_a_time() {
    let model = Scripted::new([call("c1", "slow", "{}"), Step::Say("next")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let session = editor.session().await;
        let beside = async {
            editor.until(&session, "c1 in_progress").await;
            let refused = editor.prompt(&session, "and?").await.unwrap_err();
            assert_eq!(refused.message, "session `s1` is answering a prompt already");
            editor.cancel(&session);
        };
        let (stopped, ()) = tokio::join!(editor.prompt(&session, "go"), beside);
        assert_eq!(stopped.unwrap(), StopReason::Cancelled);
        let lines = editor.lines(&session);
        assert!(
            lines.iter().any(|line| line.starts_with("c1 failed") || line.starts_with("c1 completed")),
            "{lines:?}"
        );
        assert_eq!(editor.prompt(&session, "and now?").await.unwrap(), StopReason::EndTurn);
    })
    .await;
}

#[tokio::test]
async fn a_request_can_be_cancelled_by_its_id() {
    use agent_client_protocol::v1::schema::PromptRequest;
    let model = Scripted::new([call("c1", "slow", "{}")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let session = editor.session().await;
        let blocks = vec![agent_client_protocol::v1::schema::ContentBlock::from("go".to_owned())];
        let sent = editor.cx.send_request(PromptRequest::new(session.clone(), blocks));
        editor.until(&session, "c1 in_progress").await;
        sent.cancel().unwrap();
        assert_eq!(sent.block_task().await.unwrap().stop_reason, StopReason::Cancelled);
    })
    .await;
}

#[tokio::test]
async fn a_loaded_session_tells_its_history_before_it_is_there() {
    let cupboard = Cupboard::default();
    let first = Scripted::new([call("c1", "read_note", r#"{"path":"a"}"#), Step::Say("ok")]);
    let built = runtime(config(&first)).sessions(cupboard.clone()).build();
    let host = Threads::new(built, Arc::new(Counted::default())).keeping_sessions();
    with_editor(host, [], async |editor| {
        assert!(editor.introduction.agent_capabilities.load_session);
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
    })
    .await;

    let second = Scripted::new([Step::Say("more")]);
    let built = runtime(config(&second)).sessions(cupboard).build();
    let host = Threads::new(built, Arc::new(Counted::default())).keeping_sessions();
    with_editor(host, [], async |editor| {
        let session = SessionId::from("s1");
        editor.cx.send_request(LoadSessionRequest::new(session.clone(), "/desk")).block_task().await.unwrap();
        let history = [
            "m1 user go",
            r#"call c1 Read pending `read_note: a` {"path":"a"}"#,
            "c1 completed `text of a`",
            "m3 says ok",
        ];
        assert_eq!(editor.lines(&session), history);
        assert_eq!(editor.prompt(&session, "more").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.lines(&session)[4..], ["m4 says mo", "m4 says re"]);
        let asked = second.asked.lock()[0].view.len();
        assert_eq!(asked, 5, "the model was sent the history, too");

        let nobody = LoadSessionRequest::new("nobody", "/desk");
        let refused = editor.cx.send_request(nobody).block_task().await.unwrap_err();
        assert_eq!((refused.code.value(), &*refused.message), (-32002, "there is no session `nobody`"));
    })
    .await;
}

#[tokio::test]
async fn a_resumed_session_is_silent_about_its_history() {
    let cupboard = Cupboard::default();
    let model = Scripted::new([Step::Say("more")]);
    let built = runtime(config(&model)).sessions(cupboard).build();
    built.thread("old").seed_history([UserMessage::text("long ago")]).await.unwrap();
    let host = Threads::new(built, Arc::new(Counted::default())).keeping_sessions();
    with_editor(host, [], async |editor| {
        let session = SessionId::from("old");
        editor
            .cx
            .send_request(ResumeSessionRequest::new(session.clone(), "/desk"))
            .block_task()
            .await
            .unwrap();
        editor.prompt(&session, "go").await.unwrap();
        assert_eq!(editor.lines(&session), ["m1 says mo", "m1 says re"]);
    })
    .await;
}

#[tokio::test]
async fn a_closed_session_is_over() {
    let model = Scripted::new([call("c1", "slow", "{}")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let session = editor.session().await;
        let close = async {
            editor.until(&session, "c1 in_progress").await;
            editor.cx.send_request(CloseSessionRequest::new(session.clone())).block_task().await.unwrap();
        };
        let (stopped, ()) = tokio::join!(editor.prompt(&session, "go"), close);
        assert_eq!(stopped.unwrap(), StopReason::Cancelled);
        assert_eq!(editor.prompt(&session, "go").await.unwrap_err().code.value(), -32002);
    })
    .await;
}

#[tokio::test]
async fn what_a_host_cannot_do_is_not_offered() {
    let model = Scripted::new([]);
    with_editor(threads(config(&model)), [], async |editor| {
        let capabilities = &editor.introduction.agent_capabilities;
        assert!(!capabilities.load_session && capabilities.session_capabilities.list.is_none());
        assert!(capabilities.prompt_capabilities.image && capabilities.prompt_capabilities.embedded_context);
        assert!(!capabilities.prompt_capabilities.audio);
        assert!(editor.introduction.auth_methods.is_empty());
        let info = editor.introduction.agent_info.as_ref().unwrap();
        assert_eq!((&*info.name, &*info.version), ("test", "1"));

        let list = editor.cx.send_request(ListSessionsRequest::new()).block_task().await.unwrap_err();
        assert_eq!(list.code.value(), -32601);
        let relative = editor.cx.send_request(NewSessionRequest::new("work")).block_task().await.unwrap_err();
        assert!(relative.data.unwrap().to_string().contains("must be absolute, but `work` is relative"));
        let session = editor.session().await;
        let mode = SetSessionModeRequest::new(session, "plan");
        let none = editor.cx.send_request(mode).block_task().await.unwrap_err();
        assert!(none.data.unwrap().to_string().contains("has no modes"));
    })
    .await;
}

/// A host of its own: sessions that are listed, with modes, in one folder.
struct OneFolder {
    threads: Threads,
    modes: Modes,
}

impl Host for OneFolder {
    async fn begin(&self, setup: SessionSetup) -> Result<Opened, HostFault> {
        if setup.cwd != std::path::Path::new("/desk") {
            let why = format!("`{}` is none of my business", setup.cwd.display());
            return Err(HostFault::refused(why).with_hint("open /desk"));
        }
        let mut opened = self.threads.begin(setup).await?;
        opened.mode = Some(self.modes.of(opened.thread.id()));
        Ok(opened)
    }

    fn lists_sessions(&self) -> bool {
        true
    }

    async fn list(&self) -> Result<Vec<SessionHead>, HostFault> {
        let mut head = SessionHead::new(ThreadId::from("old"), "/desk");
        (head.title, head.updated_at) = (Some("Long ago".into()), Some("2026-01-01T00:00:00Z".into()));
        Ok(vec![head, SessionHead::new(ThreadId::from("other"), "/elsewhere")])
    }
}

#[tokio::test]
async fn a_host_decides_what_is_opened_and_which_modes_there_are() {
    let model = Scripted::new([call("c1", "mode_set", r#"{"mode":"execute"}"#), Step::Say("")]);
    let ways = Modes::plan_and_execute().model_may_set();
    let mut config = config(&model);
    config.ports.tools = Arc::new(ways.tools());
    let host = OneFolder { threads: threads(config), modes: ways };
    with_editor(host, [], async |editor| {
        let elsewhere = NewSessionRequest::new("/elsewhere");
        let refused = editor.cx.send_request(elsewhere).block_task().await.unwrap_err();
        assert_eq!(
            (refused.code.value(), &*refused.message),
            (-32602, "`/elsewhere` is none of my business")
        );
        assert_eq!(refused.data.unwrap()["hint"], "open /desk");

        let begun = editor.cx.send_request(NewSessionRequest::new("/desk")).block_task().await.unwrap();
        let state = begun.modes.unwrap();
        let names: Vec<&str> = state.available_modes.iter().map(|mode| &*mode.name).collect();
        assert_eq!((&*state.current_mode_id.0, names), ("plan", vec!["plan", "execute"]));
        let session = begun.session_id;
        editor.prompt(&session, "go").await.unwrap();
        editor.until(&session, "mode execute").await;
        let back = SetSessionModeRequest::new(session.clone(), "plan");
        editor.cx.send_request(back).block_task().await.unwrap();
        let unknown = SetSessionModeRequest::new(session, "dance");
        assert!(editor.cx.send_request(unknown).block_task().await.is_err());

        let listed =
            editor.cx.send_request(ListSessionsRequest::new().cwd(std::path::PathBuf::from("/desk")));
        let listed = listed.block_task().await.unwrap().sessions;
        assert_eq!(listed.len(), 1);
        assert_eq!((&*listed[0].session_id.0, listed[0].title.as_deref()), ("old", Some("Long ago")));
    })
    .await;
}

#[tokio::test]
async fn servers_that_cannot_be_connected_are_refused() {
    use agent_client_protocol::v1::schema::{McpServer, McpServerStdio};
    let model = Scripted::new([]);
    with_editor(threads(config(&model)), [], async |editor| {
        let server = McpServer::Stdio(McpServerStdio::new("files", "/bin/files"));
        let ask = NewSessionRequest::new("/desk").mcp_servers(vec![server]);
        let refused = editor.cx.send_request(ask).block_task().await.unwrap_err();
        assert_eq!(refused.message, "1 MCP servers are wished for, and none can be connected here");
    })
    .await;
}
