//! State of a connection, and its request handlers.

use std::array::from_fn;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Channel, Client, Error, JsonRpcResponse, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
};
use harness::core::ThreadId;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::content::prompt_message;
use crate::error::HostFault;
use crate::host::{Host, Opened, SessionSetup, WishedServer};
use crate::server::AcpServer;
use crate::session::{Line, Session};

/// One connection.
pub(crate) struct State<H> {
    server: AcpServer<H>,
    permits: Arc<Semaphore>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
}

type Connection = ConnectionTo<Client>;

impl<H: Host> State<H> {
    pub(crate) fn new(server: AcpServer<H>, permits: Arc<Semaphore>) -> Arc<Self> {
        Arc::new(Self { server, permits, sessions: Mutex::default() })
    }

    /// Serves the client until it disconnects.
    ///
    /// Handlers delay the next message, so long work is a separate task; anything that determines
    /// the order (which session, which prompt) is done before.
    pub(crate) async fn serve(self: &Arc<Self>, channel: Channel) -> Result<(), Error> {
        let [init, new, load, resume, list, close, mode, prompt, cancel, end] = from_fn(|_| Arc::clone(self));
        Agent
            .v1()
            .name("harness")
            .on_receive_request(
                async move |_: InitializeRequest, answer, _| answer.respond(init.introduction()),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: NewSessionRequest, answer, line| new.begin(ask, answer, line),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: LoadSessionRequest, answer, line| load.load(ask, answer, line),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: ResumeSessionRequest, answer, line| resume.resume(ask, answer, line),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: ListSessionsRequest, answer, _| list.list(ask, answer),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: CloseSessionRequest, answer, _| close.close(&ask.session_id, answer),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: SetSessionModeRequest, answer, _| mode.set_mode(&ask, answer),
                on_receive_request!(),
            )
            .on_receive_request(
                async move |ask: PromptRequest, answer, _| prompt.prompt(ask, answer),
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |ask: CancelNotification, _| {
                    cancel.cancel(&ask.session_id);
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_close(async move |_| {
                end.close_all().await;
                Ok(())
            })
            .connect_to(channel)
            .await
    }

    /// Name and capabilities of the agent. There is one protocol version; a client that supports
    /// only others learns it from the response and disconnects.
    fn introduction(&self) -> InitializeResponse {
        let host = &*self.server.host;
        let mut sessions = SessionCapabilities::new().close(SessionCloseCapabilities::new());
        if host.keeps_sessions() {
            sessions = sessions.resume(SessionResumeCapabilities::new());
        }
        if host.lists_sessions() {
            sessions = sessions.list(SessionListCapabilities::new());
        }
        let capabilities = AgentCapabilities::new()
            .load_session(host.keeps_sessions())
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(host.connects_servers()))
            .session_capabilities(sessions);
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new(self.server.name.clone(), self.server.version.clone()))
    }

    fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        self.sessions.lock().get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// Ends the turn of a session; a client may name one that is closed by now.
    fn cancel(&self, id: &SessionId) {
        if let Ok(session) = self.session(id) {
            session.cancel();
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a handler of a request returns a result")]
impl<H: Host> State<H> {
    fn begin(
        self: &Arc<Self>,
        ask: NewSessionRequest,
        answer: Responder<NewSessionResponse>,
        connection: Connection,
    ) -> Result<(), Error> {
        self.spawn(answer, move |state| async move {
            let setup = setup(ask.cwd, ask.mcp_servers)?;
            state.room()?;
            let opened = state.server.host.begin(setup.clone()).await.map_err(|fault| told(&fault))?;
            let session = state.open(opened, setup, connection);
            let answer = NewSessionResponse::new(session.id.clone()).modes(session.modes());
            Ok((answer, Some(session)))
        });
        Ok(())
    }

    fn load(
        self: &Arc<Self>,
        ask: LoadSessionRequest,
        answer: Responder<LoadSessionResponse>,
        connection: Connection,
    ) -> Result<(), Error> {
        self.spawn(answer, move |state| async move {
            let setup = setup(ask.cwd, ask.mcp_servers)?;
            let session = state.again(&ask.session_id, setup, connection).await?;
            session.replay().await?;
            Ok((LoadSessionResponse::new().modes(session.modes()), Some(session)))
        });
        Ok(())
    }

    fn resume(
        self: &Arc<Self>,
        ask: ResumeSessionRequest,
        answer: Responder<ResumeSessionResponse>,
        connection: Connection,
    ) -> Result<(), Error> {
        self.spawn(answer, move |state| async move {
            let setup = setup(ask.cwd, ask.mcp_servers)?;
            let session = state.again(&ask.session_id, setup, connection).await?;
            session.pass().await?;
            Ok((ResumeSessionResponse::new().modes(session.modes()), Some(session)))
        });
        Ok(())
    }
}

impl<H: Host> State<H> {
    fn list(
        self: &Arc<Self>,
        ask: ListSessionsRequest,
        answer: Responder<ListSessionsResponse>,
    ) -> Result<(), Error> {
        if !self.server.host.lists_sessions() {
            return answer.respond_with_error(Error::method_not_found());
        }
        self.spawn(answer, move |state| async move {
            let heads = state.server.host.list().await.map_err(|fault| told(&fault))?;
            let wanted = heads.into_iter().filter(|head| ask.cwd.as_ref().is_none_or(|cwd| *cwd == head.cwd));
            let listed = wanted.map(|head| {
                SessionInfo::new(head.id.as_str().to_owned(), head.cwd)
                    .title(head.title)
                    .updated_at(head.updated_at)
            });
            Ok((ListSessionsResponse::new(listed.collect()), None))
        });
        Ok(())
    }

    fn close(self: &Arc<Self>, id: &SessionId, answer: Responder<CloseSessionResponse>) -> Result<(), Error> {
        let Some(session) = self.sessions.lock().remove(id) else {
            return answer.respond_with_error(unknown(id));
        };
        self.spawn(answer, move |state| async move {
            state.end(&session, "the session was closed").await;
            Ok((CloseSessionResponse::new(), None))
        });
        Ok(())
    }

    fn set_mode(
        &self,
        ask: &SetSessionModeRequest,
        answer: Responder<SetSessionModeResponse>,
    ) -> Result<(), Error> {
        let set = self.session(&ask.session_id).and_then(|session| session.set_mode(&ask.mode_id.0));
        answer.respond_with_result(set.map(|()| SetSessionModeResponse::new()))
    }

    fn prompt(self: &Arc<Self>, ask: PromptRequest, answer: Responder<PromptResponse>) -> Result<(), Error> {
        let begun = self.session(&ask.session_id).and_then(|session| {
            let message = prompt_message(ask.prompt, &session.thread.config())?;
            let cancel = session.claim()?;
            Ok((session, message, cancel))
        });
        let (session, message, cancel) = match begun {
            Ok(begun) => begun,
            Err(error) => return answer.respond_with_error(error),
        };
        let request = answer.cancellation();
        self.spawn(answer, move |_| async move {
            let stopped = session.prompt(message, cancel, request).await?;
            Ok((PromptResponse::new(stopped), None))
        });
        Ok(())
    }

    /// Does what a request asks for beside other requests, and answers it. A session that is open now is followed
    /// by what may be typed in it.
    fn spawn<T, W>(self: &Arc<Self>, answer: Responder<T>, work: impl FnOnce(Arc<Self>) -> W)
    where
        T: JsonRpcResponse,
        W: Future<Output = Result<(T, Option<Arc<Session>>), Error>> + Send + 'static,
    {
        let work = work(Arc::clone(self));
        tokio::spawn(async move {
            let (result, session) = match work.await {
                Ok((answer, session)) => (Ok(answer), session),
                Err(error) => (Err(error), None),
            };
            // A client that is gone needs no answer.
            let _ = answer.respond_with_result(result);
            if let Some(session) = session {
                session.send_commands().await;
            }
        });
    }

    fn room(&self) -> Result<(), Error> {
        let most = self.server.limits.sessions;
        if self.sessions.lock().len() < most {
            return Ok(());
        }
        let why = format!("{most} sessions are open; close one first");
        Err(Error::new(Error::invalid_request().code, why))
    }

    fn open(&self, opened: Opened, setup: SessionSetup, connection: Connection) -> Arc<Session> {
        let line = Line { connection, permits: Arc::clone(&self.permits) };
        let session = Session::open(opened, setup.cwd, line);
        self.sessions.lock().insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// The session of that name: the one that is open, or else the host's.
    async fn again(
        &self,
        id: &SessionId,
        setup: SessionSetup,
        connection: Connection,
    ) -> Result<Arc<Session>, Error> {
        if let Ok(open) = self.session(id) {
            return Ok(open);
        }
        self.room()?;
        let thread = ThreadId::from(&*id.0);
        let opened = self.server.host.load(&thread, setup.clone()).await.map_err(|fault| told(&fault))?;
        let opened = opened.ok_or_else(|| unknown(id))?;
        Ok(self.open(opened, setup, connection))
    }

    async fn end(&self, session: &Session, why: &str) {
        session.stop(why).await;
        self.server.host.close(session.thread.clone()).await;
    }

    /// Ends all sessions.
    pub(crate) async fn close_all(&self) {
        let sessions: Vec<_> = self.sessions.lock().drain().map(|(_, session)| session).collect();
        for session in &sessions {
            session.cancel();
        }
        for session in &sessions {
            self.end(session, "the client is gone").await;
        }
    }
}

/// Session settings of a client.
fn setup(cwd: PathBuf, servers: Vec<McpServer>) -> Result<SessionSetup, Error> {
    if !cwd.is_absolute() {
        let why = format!("the directory of a session must be absolute, but `{}` is relative", cwd.display());
        return Err(Error::invalid_params().data(why));
    }
    let mut setup = SessionSetup::new(cwd);
    setup.mcp_servers = servers.into_iter().map(WishedServer::of).collect();
    Ok(setup)
}

fn unknown(id: &SessionId) -> Error {
    let code = Error::from(agent_client_protocol::v1::schema::Error::resource_not_found(None)).code;
    Error::new(code, format!("there is no session `{id}`"))
}

fn told(fault: &HostFault) -> Error {
    let code = if fault.refused { Error::invalid_params().code } else { Error::internal_error().code };
    let error = Error::new(code, fault.message.clone());
    match &fault.hint {
        Some(hint) => error.data(json!({ "hint": hint })),
        None => error,
    }
}
