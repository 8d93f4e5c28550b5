//! An editor and the program: the protocol's own client library for TypeScript starts the shipped example without a
//! key and a network, allows and refuses a call, and opens a conversation again.

use std::fs;

use serde::Deserialize;

use crate::support::harness;
use crate::{guarded_example, installed, other, ran};

const SCRIPT: &str = include_str!("acp.mjs");

/// What the editor saw.
#[derive(Deserialize)]
struct Seen {
    introduction: serde_json::Value,
    sessions: Vec<Session>,
    errors: Vec<i64>,
    exit: Option<i32>,
}

#[derive(Debug, Deserialize)]
struct Session {
    stopped: Option<String>,
    told: Vec<String>,
}

impl Session {
    fn has(&self, what: &str) -> bool {
        self.told.iter().any(|line| line.contains(what))
    }

    fn asked(&self) -> usize {
        self.told.iter().filter(|line| line.starts_with("asked")).count()
    }
}

#[test]
fn an_editor_talks_to_the_program() {
    let seen = talk();
    assert_eq!(seen.introduction["protocolVersion"], 1);
    assert_eq!(seen.exit, Some(0));
    assert_eq!(seen.errors, [-32002, -32602, -32601], "what is wrong is refused as such");
    let [allowed, refused, found, loaded] = &*seen.sessions else {
        panic!("not four conversations: {:#?}", seen.sessions);
    };
    assert_eq!(allowed.stopped.as_deref(), Some("end_turn"), "{allowed:#?}");
    assert!(allowed.asked() == 1 && allowed.has("RF-1040"), "an allowed call is made: {allowed:#?}");
    assert!(refused.asked() == 1 && refused.has("call failed"), "a refused call fails: {refused:#?}");
    let mut said = refused.told.iter().filter(|line| line.starts_with("says"));
    assert!(!said.any(|line| line.contains("RF-1040")), "a refused call is not made: {refused:#?}");
    assert!(found.asked() == 0 && found.has("NP-77342"), "a call that needs no approval: {found:#?}");
    let reopened = loaded.has("user My socks") && loaded.has("RF-1040");
    assert!(reopened, "a conversation that is opened again: {loaded:#?}");
}

/// Plays the editor with the example, whose refunds need somebody's approval.
fn talk() -> Seen {
    let folder = installed("acp");
    fs::write(folder.join("acp.mjs"), SCRIPT).unwrap();
    let desk = tempfile::tempdir().unwrap();
    guarded_example(&desk.path().join("example"));
    let program = harness(desk.path(), &[]);
    let mut node = other("node", &folder);
    node.arg("acp.mjs").arg(desk.path()).arg(program.get_program());
    node.args(["acp", "--sessions"]).arg(desk.path().join("sessions"));
    node.arg(desk.path().join("example/harness.yaml"));
    let said = ran(node);
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}
