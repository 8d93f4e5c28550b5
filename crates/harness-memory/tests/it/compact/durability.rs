//! What may be done with results of tools.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Block, ToolCall, ToolResultMessage};
use harness_core::tool::ToolDef;
use harness_memory::compact::durability::{
    DeterminismMetadata, DurabilityPolicies, ToolDurability, ToolDurabilityPolicy, ToolResultEnvelope,
};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn hash(hash: &str) -> DeterminismMetadata {
    DeterminismMetadata { content_hash: Some(hash.to_owned()), ..DeterminismMetadata::default() }
}

#[track_caller]
fn check_changed(was: &DeterminismMetadata, is: &DeterminismMetadata, expected: bool) {
    assert_eq!(was.has_changed(is), expected);
}

#[test]
fn a_source_is_compared_by_hash_then_tag_then_version_then_time() {
    let with = |hash: &str, etag: &str, mtime| DeterminismMetadata {
        content_hash: Some(hash.to_owned()),
        etag: Some(etag.to_owned()),
        mtime: Some(mtime),
        version: None,
    };
    check_changed(&with("a", "x", 1.0), &with("a", "y", 2.0), false);
    check_changed(&with("a", "x", 1.0), &with("b", "x", 1.0), true);
    check_changed(&with("", "x", 1.0), &with("b", "x", 2.0), false);
    check_changed(&with("", "", 1.0), &with("", "y", 1.0), false);
    check_changed(&with("", "", 0.0), &with("", "", 0.0), true);
    check_changed(&hash("a"), &DeterminismMetadata::default(), true);
    let version =
        |version: &str| DeterminismMetadata { version: Some(version.to_owned()), ..with("", "", 1.0) };
    check_changed(&version("1"), &version("2"), true);
    check_changed(&version("1"), &DeterminismMetadata { mtime: Some(2.0), ..version("1") }, false);
}

#[track_caller]
fn check_declared(metadata: &str, expected: ToolDurability) {
    let mut tool = ToolDef::new("create_order", "orders");
    tool.metadata = Some(json(metadata));
    let policies = DurabilityPolicies::built_in().with_declared([&tool]);
    assert_eq!(policies.policy_of("create_order").durability, expected);
}

#[test]
fn a_tool_declares_what_may_be_done_with_its_results() {
    check_declared(r#"{"compaction":{"durability":"ephemeral"}}"#, ToolDurability::Ephemeral);
    check_declared(r#"{"compaction":{}}"#, ToolDurability::Anchoring);
    check_declared(r#"{"team":"sales"}"#, ToolDurability::Anchoring);
    check_declared("[1]", ToolDurability::Anchoring);
    check_declared(r#"{"compaction":{"durability":"whatever"}}"#, ToolDurability::NonReplayable);
}

#[test]
fn key_fields_are_found_by_pointers_in_data_and_in_text_that_is_json() {
    let mut tool = ToolDef::new("create_order", "orders");
    tool.metadata = Some(json(
        r#"{"compaction":{"keyFields":["/order/id","/total","/missing"],"externalizeThresholdTokens":50}}"#,
    ));
    let policies = DurabilityPolicies::none().with_declared([&tool]);
    let policy = policies.policy_of("create_order");
    assert_eq!(policy.externalize_threshold_tokens, Some(50));

    let call = ToolCall::new("c1", "create_order", Json::empty_object());
    let data = r#"{"order":{"id":"o-9"},"total":12.50,"items":[]}"#;
    let mut structured = ToolResultMessage::new(&call, vec![Block::text("ordered")], false);
    structured.structured = Some(json(data));
    let text = ToolResultMessage::new(&call, vec![Block::text(data)], true);
    let placeholder = |result: &ToolResultMessage| ToolResultEnvelope::of(result, &policies).placeholder();
    assert_eq!(placeholder(&structured), "[create_order: success]\nKey data: id=o-9, total=12.5");
    assert_eq!(placeholder(&text), "[create_order: failure]\nKey data: id=o-9, total=12.5");
    let plain = ToolResultMessage::new(&call, vec![Block::text("no data")], false);
    assert_eq!(placeholder(&plain), "[create_order: success]");
}

#[test]
fn an_envelope_comes_back_from_the_result_that_bears_it() {
    let mut envelope = ToolResultEnvelope::default();
    envelope.tool_name = "web_search".to_owned();
    envelope.durability = Some(ToolDurability::Ephemeral);
    envelope.determinism = Some(hash("aa"));
    envelope.key_fields.insert("hits".to_owned(), json("3"));
    let call = ToolCall::new("c1", "web_search", Json::empty_object());
    let result = ToolResultMessage::new(&call, vec![Block::text("…"), envelope.block()], false);
    assert_eq!(ToolResultEnvelope::attached(&result), Some(envelope));
}

#[track_caller]
fn check_replayable(determinism: Option<DeterminismMetadata>, now: Option<&str>, expected: ToolDurability) {
    let current = now.map(hash);
    let capture = Arc::new(move |_: &ToolResultEnvelope| current.clone());
    let mut policy = ToolDurabilityPolicy::new(ToolDurability::Replayable);
    policy.capture = Some(capture);
    let policies = DurabilityPolicies::none().with("read_file", policy);
    let mut envelope = ToolResultEnvelope::default();
    envelope.tool_name = "read_file".to_owned();
    envelope.determinism = determinism;
    assert_eq!(envelope.durability_now(&policies), expected);
}

#[test]
fn a_replayable_result_whose_source_has_changed_cannot_be_called_back() {
    check_replayable(Some(hash("a")), Some("a"), ToolDurability::Replayable);
    check_replayable(Some(hash("a")), Some("b"), ToolDurability::NonReplayable);
    check_replayable(Some(hash("a")), None, ToolDurability::NonReplayable);
    check_replayable(None, Some("a"), ToolDurability::NonReplayable);
}
