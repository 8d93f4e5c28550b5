//! An editor and the program: the protocol's own client library for TypeScript starts the shipped example without a
//! key and a network, allows and refuses a call, and opens a conversation again.
//!
//! The library comes from the package registry of Node. Where it cannot be had, the check says so and does not fail:
//! the crate's own tests drive it with the library for Rust.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::{Workspace, read, root};

const SCRIPT: &str = include_str!("acp.mjs");
const PACKAGES: [&str; 2] = ["@agentclientprotocol/sdk@2.4.0", "zod@4.6.7"];

/// The files of the example that are needed here.
const EXAMPLE: &str = "fixtures/examples/customer-support";

/// What the editor saw.
#[derive(Deserialize)]
struct Seen {
    introduction: serde_json::Value,
    sessions: Vec<Session>,
    errors: Vec<i64>,
    exit: Option<i32>,
}

#[derive(Deserialize)]
struct Session {
    choose: String,
    stopped: Option<String>,
    told: Vec<String>,
}

pub(super) fn run(program: &Program) -> Result<String> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("acp");
    if let Err(fault) = npm::install(&folder, &PACKAGES) {
        return Ok(format!("skipped, because the client library cannot be had: {fault}"));
    }
    write(&folder.join("acp.mjs"), SCRIPT)?;
    let desk = tempfile::tempdir().map_err(|e| Fault::because("a folder for the example", e))?;
    guarded_example(desk.path())?;
    let seen = talk(program, &folder, desk.path())?;
    check(&seen)?;
    let told: usize = seen.sessions.iter().map(|session| session.told.len()).sum();
    Ok(format!("{} conversations, {told} things told", seen.sessions.len()))
}

/// The example, whose refunds need somebody's approval.
fn guarded_example(desk: &Path) -> Result<()> {
    let example = root().join(EXAMPLE);
    let mut copy = process::command("cp");
    process::run(copy.arg("-r").arg(&example).arg(desk.join("example")))?;
    let registry = desk.join("example/registry.yaml");
    let text = read(&registry)?;
    let guarded = text.replace("    class: unsafe\n", "    class: unsafe\n    requires_approval: true\n");
    if guarded == text {
        return Err(Fault::new("no tool of the example is unsafe any more"));
    }
    write(&registry, &guarded)
}

fn talk(program: &Program, folder: &Path, desk: &Path) -> Result<Seen> {
    let harness = program.command([]);
    let mut node = process::command("node");
    process::without_keys(&mut node);
    node.current_dir(folder).arg("acp.mjs").arg(desk).arg(harness.get_program());
    node.args(["acp", "--sessions"]).arg(desk.join("sessions")).arg(desk.join("example/harness.yaml"));
    let said = process::capture(&mut node)?;
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|e| Fault::because(last, e))
}

fn check(seen: &Seen) -> Result<()> {
    let must = |holds: bool, what: &str| {
        let told: Vec<_> = seen.sessions.iter().map(|session| (&session.choose, &session.told)).collect();
        if holds { Ok(()) } else { Err(Fault::new(format!("{what}: {told:#?}, errors {:?}", seen.errors))) }
    };
    must(
        seen.introduction.get("protocolVersion").is_some_and(|version| version == 1),
        "the protocol's version",
    )?;
    must(seen.exit == Some(0), "the program ended with an error")?;
    must(seen.errors == [-32002, -32602, -32601], "what is wrong was not refused as such")?;
    let [allowed, refused, found, loaded] = &*seen.sessions else {
        return must(false, "four conversations");
    };
    let has = |session: &Session, what: &str| session.told.iter().any(|line| line.contains(what));
    let asked = |session: &Session| session.told.iter().filter(|line| line.starts_with("asked")).count();
    must(allowed.stopped.as_deref() == Some("end_turn"), "an allowed call")?;
    must(asked(allowed) == 1 && has(allowed, "RF-1040"), "an allowed call is made")?;
    must(asked(refused) == 1 && has(refused, "call failed"), "a refused call fails")?;
    must(
        !refused.told.iter().any(|line| line.starts_with("says") && line.contains("RF-1040")),
        "a refused call is made",
    )?;
    must(asked(found) == 0 && has(found, "NP-77342"), "a call that needs no approval")?;
    must(has(loaded, "user My socks") && has(loaded, "RF-1040"), "a conversation that is opened again")
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| Fault::because(path.display(), e))
}
