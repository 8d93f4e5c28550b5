//! Digests of proposed calls.

use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::port::ProposedCall;
use harness_core::tool::ToolDef;
use harness_core::{CallDigest, Json, Origin};

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn digest(run: &str, call: &str, def: &ToolDef, arguments: &str) -> CallDigest {
    CallDigest::of(Some(&run.into()), &call.into(), def, &json(arguments))
}

#[test]
fn digest_changes_with_run_call_arguments_and_contract() {
    let def = ToolDef::new("pay", "pays").with_schema(json(r#"{"type":"object"}"#));
    let here = digest("r1", "c1", &def, r#"{"a":1,"b":2}"#);
    assert_eq!(here, digest("r1", "c1", &def, r#"{ "a": 1, "b": 2 }"#), "white space is no difference");
    assert_ne!(here, digest("r2", "c1", &def, r#"{"a":1,"b":2}"#));
    assert_ne!(here, digest("r1", "c2", &def, r#"{"a":1,"b":2}"#));
    assert_ne!(here, digest("r1", "c1", &def, r#"{"a":1,"b":3}"#));
    let mut changed = def.clone();
    changed.metadata = Some(json(r#"{"version":2}"#));
    assert_ne!(here, digest("r1", "c1", &changed, r#"{"a":1,"b":2}"#));
    let changed = def.clone().with_schema(json(r#"{"type":"object","required":["a"]}"#));
    assert_ne!(here, digest("r1", "c1", &changed, r#"{"a":1,"b":2}"#));
    let mut reworded = def;
    reworded.description = "pays money".into();
    assert_eq!(here, digest("r1", "c1", &reworded, r#"{"a":1,"b":2}"#), "wording is no contract");
}

#[test]
fn digest_distinguishes_amounts_beyond_double_precision() {
    let def = ToolDef::new("pay", "pays");
    let amount = |text| digest("r1", "c1", &def, text);
    assert_ne!(amount(r#"{"n":9007199254740993}"#), amount(r#"{"n":9007199254740992}"#));
    assert_ne!(amount(r#"{"n":1,"n":2}"#), amount(r#"{"n":2}"#));
}

#[test]
fn proposed_call_survives_its_json_form() {
    let call = Arc::new(ToolCall::new("c1", "pay", json(r#"{"n":1.10}"#)));
    let mut origin = Origin::default();
    origin.run = Some("r1".into());
    let proposed = ProposedCall::new(call, ToolDef::new("pay", "pays"), "main".into(), 2);
    let proposed = ProposedCall { origin: Arc::new(origin), ..proposed }.held("above 50");
    let read: ProposedCall = Json::of(&proposed).expect("JSON").to().expect("a proposed call");
    assert_eq!((read.id(), read.digest()), (proposed.id(), proposed.digest()));
    assert_eq!(read, proposed);
}
