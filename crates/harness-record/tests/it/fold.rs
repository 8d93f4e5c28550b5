//! From events to a record.

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use harness_core::testing::ModelStep;
use harness_core::tool::ToolDef;
use harness_core::{Json, canonical};
use harness_record::{RecordError, RecordOptions, RunRecord, RunStart, render_html, render_text};

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn a_record_tells_what_was_asked_done_and_said() {
    let record = usual().run().record;
    let mut told = serde_json::json!({
        "runId": record.run_id, "at": [record.started_at, record.completed_at], "elapsedMs": record.elapsed_ms,
        "end": [record.outcome.as_str(), record.stop_reason.as_str()],
        "agent": record.agent_name, "model": record.model,
        "question": record.question, "response": record.response,
        "items": record.items.len(), "input": record.input_item_count, "earlier": record.earlier_item_count,
        "usage": record.usage,
    });
    told.sort_all_objects();
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap(), @r#"
    {
      "agent": "expert",
      "at": [
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.120Z"
      ],
      "earlier": 0,
      "elapsedMs": 120,
      "end": [
        "completed",
        "answer_finalized"
      ],
      "input": 1,
      "items": 7,
      "model": "large",
      "question": "Where is order 7?",
      "response": "It is on its way.",
      "runId": "run-1",
      "usage": {
        "byPurpose": {
          "answer": {
            "inputTokens": 320,
            "modelCalls": 3,
            "outputTokens": 19,
            "totalTokens": 339
          }
        },
        "inputTokens": 320,
        "modelCalls": 3,
        "outputTokens": 19,
        "toolCalls": 3
      }
    }
    "#);
    let model_calls = record.model_calls.iter().map(|call| {
        let (output, item) = (call.output_type.as_deref().unwrap_or("-"), call.item.unwrap_or_default());
        format!(
            "{} {} {} {output} {} ms item {item}",
            call.turn, call.agent_name, call.timestamp, call.duration_ms
        )
    });
    insta::assert_snapshot!(model_calls.collect::<Vec<_>>().join("\n"), @r#"
    1 desk 2026-01-01T00:00:00.000Z tool_request 40 ms item 1
    2 desk 2026-01-01T00:00:00.050Z tool_request 40 ms item 4
    3 expert 2026-01-01T00:00:00.090Z final_answer 30 ms item 6
    "#);
    let tool_calls = record.tool_calls.iter().map(|call| {
        let error = call.error_code.as_deref().unwrap_or("-");
        format!(
            "{} {} {} by {}: {} {error}, ran {}, {} attempts, {} ms",
            call.turn,
            call.call_id,
            call.name,
            call.agent_name,
            call.status,
            call.ran,
            call.attempts,
            call.duration_ms
        )
    });
    insta::assert_snapshot!(tool_calls.collect::<Vec<_>>().join("\n"), @r#"
    1 c1 look by desk: success -, ran true, 1 attempts, 5 ms
    1 c2 look by desk: failed not_found, ran true, 1 attempts, 10 ms
    2 c3 to_expert by desk: success -, ran true, 1 attempts, 0 ms
    "#);
    let handoff = &record.handoffs[0];
    assert_eq!((handoff.turn, handoff.from.as_str(), handoff.to.as_str()), (2, "desk", "expert"));
}

#[test]
fn law_7_the_record_of_a_replayed_run_is_that_of_the_live_run() {
    let mut scene = usual();
    scene.policy = true;
    scene.context = Some(json(r#"{"customer":"Ada"}"#));
    scene.history = vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    let start = RunStart::new(scene.context.clone(), scene.history.clone());
    let ran = scene.run();
    assert_eq!(refolded(&ran.events, RecordOptions::default(), start), ran.record);
}

#[test]
fn a_record_survives_its_text() {
    let mut scene = usual();
    scene.policy = true;
    scene.context = Some(json(r#"{"n":9007199254740993}"#));
    let record = scene.run().record;
    let text = record.to_json().unwrap();
    assert!(text.text().starts_with(r#"{"kind":"harness.run_record","version":1,"runId":"run-1""#));
    assert_eq!(RunRecord::from_text("r.json", text.text()).unwrap(), record);
}

#[track_caller]
fn check_refused(text: &str, kind: &str, expected: &str) {
    let error: RecordError = RunRecord::from_text("r.json", text).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, expected));
}

#[test]
fn what_is_no_record_is_refused() {
    check_refused(
        r#"{"kind":"harness.run_record","version":2,"new":{}}"#,
        "record.newer_version",
        "run record `r.json` has version 2, this program reads version 1",
    );
    check_refused(
        r#"{"kind":"other"}"#,
        "record.not_a_record",
        "run record `r.json`: expected the `kind` `harness.run_record`, found `other`",
    );
    check_refused(
        r#"{"version":1}"#,
        "record.not_a_record",
        "run record `r.json`: expected the `kind` `harness.run_record`, found none",
    );
}

#[test]
fn fingerprints_are_the_hashes_of_the_documented_texts() {
    let record = usual().run().record;
    let first = &record.request_fingerprints[0];
    let messages = r#"[{"content":"Where is order 7?","role":"user","type":"message"}]"#;
    let tools = concat!(
        r#"[{"description":"Looks at something.","name":"look","parameters":{"type":"object"}},"#,
        r#"{"description":"Pays.","name":"pay","parameters":{}},{"description":"Drops it.","name":"drop","parameters":{}},"#,
        r#"{"description":"Knows all.","name":"to_expert","parameters":{}}]"#
    );
    let settings = r#"{"temperature":0.5}"#;
    let request = format!(
        r#"{{"messages":{messages},"model":"small","modelSettings":{settings},"systemPrompt":"You are the desk.","tools":{tools}}}"#
    );
    assert_eq!(first.messages_hash, canonical::sha256_hex(messages));
    assert_eq!(first.tools_hash, canonical::sha256_hex(tools));
    assert_eq!(first.model_settings_hash, canonical::sha256_hex(settings));
    assert_eq!(first.system_prompt_hash, canonical::sha256_hex(r#""You are the desk.""#));
    assert_eq!(first.request_hash, canonical::sha256_hex(request));
    assert_eq!((first.message_count, first.tool_count), (1, 4));
    assert_eq!(first.fingerprint_schema_version, "request-fingerprint.v2");

    let second = &record.request_fingerprints[1];
    let messages = concat!(
        r#"[{"content":"Where is order 7?","role":"user","type":"message"},"#,
        r#"{"arguments":{"order":7},"callId":"c1","name":"look","type":"tool_call_item"},"#,
        r#"{"arguments":{"order":8},"callId":"c2","name":"look","type":"tool_call_item"},"#,
        r#"{"callId":"c1","output":"{\"at\":\"Oslo\"}","type":"tool_call_output_item"},"#,
        r#"{"callId":"c2","isError":true,"output":"there is no order 8","type":"tool_call_output_item"}]"#
    );
    assert_eq!(second.messages_hash, canonical::sha256_hex(messages));
}

/// Events of one request over a transcript of three messages, of which a plan shows parts.
fn planned(spans: &str) -> RunRecord {
    let prepared = Json::of(&PreparedAgent::new("desk", "", Vec::<ToolDef>::new())).unwrap();
    let message = |text: &str| Json::of(&Message::user(text)).unwrap();
    let end = r#"{"stop":{"reason":"answer_finalized"},"iterations":1,"turns":1,"usage":{},"elapsed":5}"#;
    let mut kinds = vec![r#""type":"run_started""#.to_owned()];
    kinds.extend(
        ["a", "b", "c"].iter().enumerate().map(|(at, text)| {
            format!(r#""type":"message_appended","index":{at},"message":{}"#, message(text))
        }),
    );
    kinds.push(format!(r#""type":"agent_prepared","offer":{prepared}"#));
    kinds.push(format!(
        r#""type":"view_planned","by":"layers","messages":3,"spans":1,"plan":{{"spans":[{spans}]}}"#
    ));
    kinds.push(r#""type":"model_step_started","agent":"desk""#.to_owned());
    kinds.push(format!(r#""type":"run_finished","end":{end}"#));
    let events = kinds.iter().enumerate().map(|(seq, kind)| {
        json(&format!(r#"{{"seq":{seq},"at":{seq},"turn":1,"iteration":1,{kind},"origin":{{}}}}"#))
            .to()
            .unwrap()
    });
    refolded(&events.collect::<Vec<_>>(), RecordOptions::default(), RunStart::default())
}

#[test]
fn a_fingerprint_covers_the_view_and_not_the_transcript() {
    let item = |text: &str| format!(r#"{{"content":"{text}","role":"user","type":"message"}}"#);
    let made = Json::of(&Message::user("sum")).unwrap();
    let record =
        planned(&format!(r#"{{"made":[{made}]}},{{"kept":{{"start":2,"end":18446744073709551615}}}}"#));
    let shown = format!("[{},{}]", item("sum"), item("c"));
    assert_eq!(record.request_fingerprints[0].messages_hash, canonical::sha256_hex(shown));
    assert_eq!(record.request_fingerprints[0].message_count, 2);
    assert_eq!(record.notes[0].text, "the layers planned a view of 1 parts over 3 messages");
}

#[test]
fn a_conversation_that_goes_on_is_in_the_record_or_counted() {
    let history = || vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    let mut scene = Scene::new([says("Yes.")], []);
    scene.history = history();
    let record = scene.run().record;
    assert_eq!((record.earlier_item_count, record.input_item_count, record.unknown_item_count), (2, 3, 0));
    assert_eq!(record.items.len(), 4);
    assert_eq!(record.question, "Where is order 7?");
    assert_eq!(record.request_fingerprints[0].message_count, 3);

    let mut scene = Scene::new([says("Yes.")], []);
    (scene.history, scene.tells_history) = (history(), false);
    let record = scene.run().record;
    assert_eq!((record.earlier_item_count, record.input_item_count, record.unknown_item_count), (0, 1, 2));
}

#[test]
fn a_run_that_fails_says_why() {
    let fault = ModelFault::new(ModelFaultCode::AuthFailed, "the key is wrong");
    let record = Scene::new([ModelStep::fault(fault)], []).run().record;
    assert_eq!(record.outcome.as_str(), "failed");
    assert_eq!(record.error_name.as_deref(), Some("auth_failed"));
    assert_eq!(record.error_message.as_deref(), Some("model: the key is wrong"));
    assert_eq!(record.model_calls[0].fault.as_ref().map(|fault| &*fault.code), Some("auth_failed"));
    assert_eq!(record.response, None);
}

#[test]
fn a_limit_is_told_with_its_evidence_and_is_no_completion() {
    let mut scene = usual();
    scene.spec.turn.limits.tool_calls = 1;
    scene.spec.turn.closing_step = false;
    let record = scene.run().record;
    assert_eq!(
        (record.outcome.as_str(), record.stop_reason.as_str()),
        ("deferred", "max_tool_calls_reached")
    );
    assert_eq!(Json::of(&record.status).unwrap().text(), r#""failed""#);
    let limit = &record.limits_reached[0];
    assert_eq!((limit.limit.as_deref(), limit.value, limit.ceiling), (Some("tool calls"), Some(1), Some(1)));
    assert_eq!(record.error_message.as_deref(), Some("tool calls: 1 of 1"));
}

#[test]
fn policy_decisions_and_the_candidate_are_recorded() {
    let mut scene = Scene::new(
        [asks([call("c1", "look", "{}"), call("c2", "drop", "{}")]), says("Done.")],
        [ToolOutcome::text("seen")],
    );
    scene.policy = true;
    scene.options.candidate.registry_version = Some("r1".to_owned());
    let record = scene.run().record;
    let decisions = Json::of(&record.policy_decisions).unwrap();
    insta::assert_snapshot!(decisions.text().replace("},{", "},\n{"), @r#"
    [{"seq":8,"timestamp":"2026-01-01T00:00:00.040Z","turn":1,"callId":"c1","decision":"allow","reason":"harmless","policyVersion":"p1","resource":{"kind":"tool","name":"look"},"proposalHash":"h-look","metadata":{"rule":1}},
    {"seq":12,"timestamp":"2026-01-01T00:00:00.045Z","turn":1,"callId":"c2","decision":"deny","reason":"too_dangerous","publicReason":"Not here.","resultMode":"tool_result","policyVersion":"p1","resource":{"kind":"tool","name":"drop"},"proposalHash":"h-drop"}]
    "#);
    let denied = &record.tool_calls[1];
    assert_eq!((denied.ran, denied.attempts, denied.error_code.as_deref()), (false, 0, Some("tool_blocked")));
    let candidate = &record.candidate;
    assert_eq!(candidate.descriptor_hash.as_deref(), Some("sha256:d"));
    assert_eq!(candidate.policy_version.as_deref(), Some("p1"));
    assert_eq!(candidate.model.as_deref(), Some("small"));
    let identity = r#"{"descriptorHash":"sha256:d","model":"small","packageVersion":null,"policyVersion":"p1","provider":null,"registryVersion":"r1"}"#;
    assert_eq!(candidate.digest, canonical::sha256_hex(identity));
}

#[test]
fn a_turn_without_a_run_around_it_counts_as_one() {
    let ran = usual().run();
    let turn: Vec<_> =
        ran.events.into_iter().filter(|event| !event.kind.name().starts_with("run_")).collect();
    let record = refolded(&turn, RecordOptions::default(), RunStart::default());
    assert_eq!(record.response.as_deref(), Some("It is on its way."));
}

/// A model that streams each part after a time, and answers 700 ms later.
struct Typist(VirtualClock, Vec<(u64, DeltaPart)>);

impl Model for Typist {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        for (after, part) in &self.1 {
            self.0.advance(Millis(*after));
            deltas.part(part.clone());
        }
        self.0.advance(Millis(700));
        Ok(AssistantMessage::text("It is on its way."))
    }
}

#[track_caller]
fn check_first_token(parts: Vec<(u64, DeltaPart)>, expected: Option<u64>) {
    let mut scene = usual();
    scene.model = Arc::new(Typist(scene.clock.clone(), parts));
    let Ran { record, events } = scene.run();
    assert_eq!(record.model_calls[0].first_token_ms, expected);
    assert_eq!(
        record.model_calls,
        refolded(&events, RecordOptions::default(), RunStart::default()).model_calls
    );
    let shown = expected.map(|first| format!("first token {first} ms"));
    for text in [render_text(&record), render_html(&record)] {
        assert_eq!(text.contains("first token"), shown.is_some(), "{text}");
        assert!(shown.iter().all(|shown| text.contains(shown)), "{text}");
    }
}

#[test]
fn first_token_is_the_first_streamed_part_of_an_answer() {
    let text = || DeltaPart::Text("It".to_owned());
    check_first_token(vec![], None);
    check_first_token(vec![(120, text()), (30, text())], Some(120));
    check_first_token(vec![(120, DeltaPart::Thinking("Hm.".to_owned())), (30, text())], Some(120));
    check_first_token(vec![(20, DeltaPart::Note("slow".to_owned())), (100, text())], Some(120));
    let call = DeltaPart::CallStarted { index: 0, id: None, name: "look".into() };
    check_first_token(vec![(120, call)], Some(120));
}
