//! The official client of AG-UI, unchanged, against the server, with the shipped example, whose refunds require approval,
//! and its demo model. The client checks each event against the protocol's schema and the order of the events.

use crate::openai::check;
use crate::{installed, other};

#[test]
fn the_javascript_client_works_unchanged() {
    let folder = installed("ag-ui");
    let script = folder.join("client.mjs");
    std::fs::write(&script, include_str!("ag_ui_client.mjs")).unwrap();
    let mut client = other("node", &folder);
    client.arg(&script);
    check(&folder, client);
}
