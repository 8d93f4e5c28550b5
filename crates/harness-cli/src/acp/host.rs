//! The threads of editor sessions. Each session has separate parts, built from the command line.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use harness::core::ThreadId;
use harness::core::port::{Clock, Ids as _};
use harness::runtime::Thread;
use harness::system::SystemIds;
use harness::tools::mcp::McpServer;
use harness::{Builder, SessionStore};
use harness_acp::{EditorApprover, Host, HostFault, Opened, SessionSetup, mcp};
use parking_lot::Mutex;

use crate::args::{AcpArgs, ThreadArgs};
use crate::error::CliError;
use crate::records::recording::service_recording;
use crate::session::options;
use crate::threads::{Of, Threads, found};
use crate::{env, model};

/// One set of parts for each session, so that tools and modes are its own.
pub(super) struct CommandLine {
    args: AcpArgs,
    descriptor: PathBuf,
    clock: Arc<dyn Clock>,
    ids: SystemIds,
    open: Mutex<HashMap<ThreadId, Open>>,
}

/// Parts of an open session.
struct Open {
    threads: Threads,
    servers: Vec<McpServer>,
}

impl CommandLine {
    pub(super) fn new(args: AcpArgs, descriptor: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { args, descriptor, clock, ids: SystemIds::new(), open: Mutex::default() }
    }

    /// Puts everything together once, and takes it apart again.
    pub(super) async fn try_out(&self) -> Result<(), CliError> {
        self.threads(&ThreadId::from("try-out"), EditorApprover::new()).await?.close().await;
        Ok(())
    }

    fn store(&self) -> Option<SessionStore> {
        self.args.sessions.as_ref().map(|place| SessionStore::new(place).options(options()))
    }

    async fn threads(&self, thread: &ThreadId, approver: EditorApprover) -> Result<Threads, CliError> {
        let of = Of {
            descriptor: Some(&self.descriptor),
            sessions: self.store(),
            thread: Some(thread.clone()),
            pools: None,
        };
        let templates = found::templates(&self.args.templates, of.descriptor, found::untypable).await?;
        let recording = service_recording(&self.args.threads, of.descriptor)?;
        let is_recorded = self.args.threads.recorded.run_record.is_some();
        let change = |builder: Builder| {
            let builder = builder.templates(templates);
            if is_recorded { builder.record(recording) } else { builder }
        };
        let threads = {
            let ThreadArgs { agents, spans, .. } = &self.args.threads;
            Threads::open(of, agents, spans, approver, &self.clock, change).await?
        };
        model::announce(threads.notice.as_deref());
        Ok(threads)
    }

    async fn thread(&self, id: &ThreadId, setup: &SessionSetup) -> Result<Opened, HostFault> {
        let approver = EditorApprover::new();
        let threads = self.threads(id, approver.clone()).await.map_err(|error| host_fault(&error))?;
        let thread = threads.runtime.thread(id.clone());
        let servers = mcp::connect(&thread, setup, &env::surroundings(), &self.clock).await;
        let mut opened = Opened::new(thread);
        (opened.approver, opened.mode) = (Some(approver), threads.modes().map(|modes| modes.of(id)));
        self.open.lock().insert(id.clone(), Open { threads, servers });
        Ok(opened)
    }
}

fn host_fault(error: &CliError) -> HostFault {
    let fault = HostFault::failed(error.to_string());
    match error.hint() {
        Some(hint) => fault.with_hint(hint),
        None => fault,
    }
}

impl Host for CommandLine {
    async fn begin(&self, setup: SessionSetup) -> Result<Opened, HostFault> {
        self.thread(&ThreadId::from(self.ids.run_id().as_str()), &setup).await
    }

    fn connects_servers(&self) -> bool {
        true
    }

    fn keeps_sessions(&self) -> bool {
        self.args.sessions.is_some()
    }

    async fn load(&self, id: &ThreadId, setup: SessionSetup) -> Result<Option<Opened>, HostFault> {
        let stored = self.store().is_some_and(|store| store.find(id).is_ok_and(|found| found.is_some()));
        if stored { self.thread(id, &setup).await.map(Some) } else { Ok(None) }
    }

    async fn close(&self, thread: Thread) {
        let open = self.open.lock().remove(thread.id());
        thread.close().await;
        if let Some(Open { threads, servers }) = open {
            for server in servers {
                server.close().await;
            }
            threads.close().await;
        }
    }
}
