//! What must not be in a record.

use harness_core::message::Message;
use harness_record::{RedactError, Redaction, Redactor};

use super::*;

const CONTEXT: &str = r#"{"customer":{"email":"ada@example.com","card":4111111111111111,"tier":"gold"}}"#;

/// A run in which the customer's data turns up everywhere.
fn leaky() -> Scene {
    let mut scene = Scene::new(
        [
            asks([call(
                "c1",
                "look",
                r#"{"customer":{"email":"other@example.com"},"card":4111111111111111}"#,
            )]),
            says("I wrote to ada@example.com."),
        ],
        [ToolOutcome::text(
            r#"{"customer":{"email":"third@example.com"},"note":"ada@example.com was seen"}"#,
        )],
    );
    scene.context = Some(json(CONTEXT));
    scene.prompt = Some(Message::user("I am ada@example.com, where is my order?"));
    scene
}

fn recorded(redaction: Redaction) -> RunRecord {
    let mut scene = leaky();
    scene.options.redaction = redaction;
    scene.run().record
}

#[test]
fn without_a_redaction_the_context_is_recorded_as_it_was() {
    let record = recorded(Redaction::none());
    assert_eq!(record.context_snapshot, Some(json(CONTEXT)));
    assert!(!record.context_redacted);
}

#[test]
fn paths_are_taken_out_of_context_arguments_and_results_and_their_values_out_of_everything() {
    let record = recorded(Redaction::none().paths(["customer.email", "customer.card"]));
    let context = record.context_snapshot.as_ref().unwrap();
    assert_eq!(context.text(), r#"{"customer":{"email":"[redacted]","card":"[redacted]","tier":"gold"}}"#);
    assert!(record.context_redacted);
    let text = record.to_json().unwrap();
    for secret in ["ada@example.com", "other@example.com", "third@example.com", "4111111111111111"] {
        assert!(!text.text().contains(secret), "{secret} is in {text}");
    }
    let call = record.items[1].as_assistant().unwrap().tool_calls().next().unwrap().arguments.clone();
    assert_eq!(call.text(), r#"{"customer":{"email":"[redacted]"},"card":"[redacted]"}"#);
    assert_eq!(record.question, "I am [redacted], where is my order?");
    assert_eq!(record.response.as_deref(), Some("I wrote to [redacted]."));
    // Hashes are of what was really used, so that a replay finds its calls.
    let arguments = json(r#"{"customer":{"email":"other@example.com"},"card":4111111111111111}"#);
    assert_eq!(record.tool_calls[0].args_hash, harness_core::canonical::hash(&arguments));
}

/// Fails, panics, or gives nonsense.
struct Broken(&'static str);

impl Redactor for Broken {
    fn context(&self, context: Json) -> Result<Json, RedactError> {
        match self.0 {
            "fails" => Err(RedactError("cannot parse ada@example.com".to_owned())),
            "panics" => panic!("no rule for ada@example.com"),
            _ => Ok(context),
        }
    }

    fn item(&self, _: Json) -> Result<Json, RedactError> {
        Ok(json(r#"{"role":"nobody"}"#))
    }
}

#[track_caller]
fn check_closed(how: &'static str, said: &str) {
    let record = recorded(Redaction::none().with(Broken(how)));
    assert_eq!(record.redaction.failed.as_deref(), Some(said));
    assert_eq!(record.context_snapshot, None);
    assert!(record.context_redacted);
    assert!(record.items.is_empty());
    assert_eq!(record.response.as_deref(), Some("[redacted]"));
    let text = record.to_json().unwrap();
    for secret in ["ada@example.com", "gold", "4111111111111111", "You are the desk."] {
        assert!(!text.text().contains(secret), "{how}: {secret} is in {text}");
    }
    assert_eq!(record.tool_calls.len(), 1, "what was called is no secret");
}

#[test]
fn a_redactor_that_does_not_work_lets_nothing_through() {
    check_closed("fails", "the redactor failed");
    check_closed("panics", "the redactor panicked");
    check_closed("nonsense", "the redactor returned an invalid message");
}

/// Takes out names.
struct Names;

impl Redactor for Names {
    fn context(&self, context: Json) -> Result<Json, RedactError> {
        self.value(context)
    }

    fn item(&self, item: Json) -> Result<Json, RedactError> {
        self.value(item)
    }

    fn value(&self, value: Json) -> Result<Json, RedactError> {
        Json::parse(&value.text().replace("ada", "***")).map_err(|error| RedactError(error.to_string()))
    }
}

#[test]
fn a_redactor_of_ones_own_sees_context_items_and_texts() {
    let record = recorded(Redaction::none().with(Names));
    assert!(!record.to_json().unwrap().text().contains("ada"), "{record:?}");
    assert_eq!(record.response.as_deref(), Some("I wrote to ***@example.com."));
    assert!(record.redaction.custom);
}

#[test]
fn a_suspended_proposal_loses_what_its_arguments_lose() {
    let facts = r#"{"decision":"require_approval","reason":"big","resource":{"kind":"tool","name":"pay"},"proposalHash":"h","suspendedProposal":{"toolName":"pay","rawArguments":"{\"customer\":{\"email\":\"x@y.z\"}}","parsedArguments":{"customer":{"email":"x@y.z"}},"argsCanonicalJson":"{\"customer\":{\"email\":\"x@y.z\"}}"}}"#;
    let mut events = leaky().run().events;
    let end = events.pop().unwrap();
    let decided = format!(
        r#"{{"seq":{},"at":{},"turn":1,"iteration":1,"type":"decided","by":"policy","point":"call","callId":"c9","verdict":"hold","facts":{facts},"durationMs":0,"origin":{{}}}}"#,
        end.seq, end.at.0
    );
    events.push(json(&decided).to().unwrap());
    events.push(end);
    let mut options = RecordOptions::default();
    options.redaction = Redaction::none().paths(["customer.email"]);
    let record = refolded(&events, options, RunStart::new(Some(json(CONTEXT)), []));
    assert_eq!(
        record.suspended_proposals[0].text(),
        r#"{"toolName":"pay","rawArguments":"[redacted]","parsedArguments":{"customer":{"email":"[redacted]"}},"argsCanonicalJson":"[redacted]"}"#
    );
    assert_eq!(record.policy_decisions[0].decision, "require_approval");
}
