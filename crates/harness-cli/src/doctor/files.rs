//! Session storage: creates a session in a directory, syncs it to the disk, and opens it again, which must fail.

use std::path::Path;
use std::sync::Arc;

use harness::core::message::Message;
use harness::core::port::{Clock, Durability, Entry, EntryHead, Session as _};
use harness::session::{Error, FileSession, OpenOptions};

use super::finding::{Area, Finding, Status};

/// A slower sync delays every tool call noticeably.
const SLOW: u64 = 250;

/// Tests the directory and leaves nothing in it.
pub(super) async fn findings(folder: &Path, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    if !folder.is_dir() {
        let message = format!("{} is not a directory", folder.display());
        let finding = Finding::new(Area::Files, "sessions", Status::Fault, message);
        return vec![finding.fix(format!("create it: mkdir -p {}", folder.display()))];
    }
    let name = format!(".harness-doctor-{}-{:x}.jsonl", std::process::id(), clock.now().0);
    let path = folder.join(name);
    let findings = tried(folder, &path, clock.as_ref()).await;
    // It may never have been made.
    let _ = std::fs::remove_file(&path);
    findings
}

async fn tried(folder: &Path, path: &Path, clock: &dyn Clock) -> Vec<Finding> {
    let shown = folder.display();
    let session = match FileSession::open(path, OpenOptions::new()) {
        Ok(session) => session,
        Err(fault) => {
            let message = format!("cannot start a session in {shown}: {fault}");
            return vec![Finding::new(Area::Files, "sessions", Status::Fault, message).fix(fault.hint())];
        }
    };
    let mut findings = vec![written(&session, folder, clock).await];
    findings.push(if let Err(Error::Locked { .. }) = FileSession::open(path, OpenOptions::new()) {
        Finding::new(Area::Files, "locks", Status::Ok, format!("sessions in {shown} can be locked"))
    } else {
        let message = format!("files in {shown} cannot be locked; two programs could write to one session");
        Finding::new(Area::Files, "locks", Status::Fault, message).fix("store sessions on a local disk")
    });
    findings
}

/// Whether writes reach the disk, and how fast.
async fn written(session: &FileSession, folder: &Path, clock: &dyn Clock) -> Finding {
    let shown = folder.display();
    let begun = clock.now();
    let message = Arc::new(Message::user("Hello."));
    let head = EntryHead::new(begun, None, 0, None);
    let appended = session.append(&head, &[Entry::Message(&message)], Durability::Sync).await;
    let took = clock.now().since(begun);
    match appended {
        Err(fault) => {
            let message = format!("writes to {shown} do not reach the disk: {fault}");
            Finding::new(Area::Files, "sessions", Status::Fault, message)
                .fix("free disk space, or store sessions elsewhere")
        }
        Ok(()) if took.0 > SLOW => {
            let message = format!("the disk of {shown} is slow: a write took {took}");
            Finding::new(Area::Files, "sessions", Status::Warning, message)
                .fix("store sessions on a local disk")
        }
        Ok(()) => {
            let message =
                format!("sessions can be stored in {shown}: a write reached the disk within {took}");
            Finding::new(Area::Files, "sessions", Status::Ok, message)
        }
    }
}
