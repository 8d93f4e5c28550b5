//! Vectors of kind `turn-fn`: functions beside the turn.

use harness_control::checks::{SPARSE_EVIDENCE, ToolOutput, exceeds_evidence_budget};
use harness_core::Json;
use harness_core::StopReason;
use harness_core::message::ToolCall;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::turn::compare::same;
use super::turn::convert::{self, text};
use super::turn::hooks;
use super::turn::spec::spec;
use super::turn::words::{Config, EvidenceOptions, ToolResult};
use crate::Done;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// A name of no stop reason, as the vectors write it.
const UNKNOWN: &str = "something_new";

/// Runs the case.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judge(vector).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<A> {
    #[serde(rename = "id")]
    _id: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    args: A,
    expect: Value,
}

/// One argument, or two.
struct Args<A, B>(A, B);

impl<'de, A: Deserialize<'de>, B: Deserialize<'de> + Default> Deserialize<'de> for Args<A, B> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Few<A, B>(std::marker::PhantomData<(A, B)>);
        impl<'de, A: Deserialize<'de>, B: Deserialize<'de> + Default> Visitor<'de> for Few<A, B> {
            type Value = Args<A, B>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("one argument, or two")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut args: S) -> Result<Args<A, B>, S::Error> {
                let first = args.next_element()?.ok_or_else(|| S::Error::invalid_length(0, &self))?;
                let second = args.next_element()?.unwrap_or_default();
                match args.next_element::<IgnoredAny>()? {
                    None => Ok(Args(first, second)),
                    Some(_) => Err(S::Error::invalid_length(3, &self)),
                }
            }
        }
        deserializer.deserialize_seq(Few(std::marker::PhantomData))
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct No {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Evidence {
    tool_calls: Vec<Output>,
    assistant_text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Output {
    name: String,
    output_chars: usize,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MessageOptions {
    #[serde(default)]
    can_retry: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Reply {
    #[serde(default)]
    suffix: String,
    #[serde(default)]
    include_stop_reason: bool,
}

fn judge(vector: &Vector) -> Done<()> {
    match text(&vector.file, "fn") {
        "createHarness" => called(vector, |Args(config, No {}): Args<Config, _>| {
            let made = spec(config.limits.as_ref(), config.tool_retry_config.as_ref());
            Ok(match made {
                Ok(_) => json!({ "ok": true }),
                Err(_) => json!({ "ok": false, "error": "HarnessConfigError" }),
            })
        }),
        "detectToolEvidenceClarification" => called(vector, |Args(result, options)| detect(result, options)),
        "exceedsEvidenceBudget" => called(vector, |Args(evidence, No {})| Ok(density(&evidence))),
        "stopReasonToUserMessage" => {
            called(vector, |Args(reason, options): Args<String, _>| Ok(message(&reason, &options)))
        }
        "truthfulFailureReply" => {
            called(vector, |Args(reason, options): Args<String, _>| Ok(reply(&reason, &options)))
        }
        other => Err(format!("unknown function `{other}`")),
    }
}

fn called<A: DeserializeOwned, B: DeserializeOwned + Default>(
    vector: &Vector,
    function: impl Fn(Args<A, B>) -> Done<Value>,
) -> Done<()> {
    let Case { args, mut expect, .. } = vector.parse::<Case<Args<A, B>>>()?;
    let got = function(args)?;
    if let Some(map) = expect.as_object_mut() {
        // A text for people.
        map.shift_remove("message");
    }
    same("expect", &expect, &got)
}

fn detect(result: ToolResult, options: EvidenceOptions) -> Done<Value> {
    let tool = result.tool_name.clone().unwrap_or_default();
    let call = ToolCall::new(result.call_id.clone().unwrap_or_default(), &*tool, Json::empty_object());
    let question = hooks::evidence_hook(options).detect(&call, &convert::outcome(result)?);
    let value = question.map(|question| hooks::question(&question, &tool)).transpose()?;
    Ok(json!({ "value": value }))
}

fn density(input: &Evidence) -> Value {
    let calls = input.tool_calls.iter();
    let outputs: Vec<_> = calls.map(|call| ToolOutput::new(&call.name, call.output_chars)).collect();
    match exceeds_evidence_budget(&outputs, &input.assistant_text) {
        Some(thin) => json!({ "value": { "exceeds": true, "reason": SPARSE_EVIDENCE, "detail": thin } }),
        None => json!({ "value": { "exceeds": false } }),
    }
}

/// The names whose texts are compared, in the vectors' order.
fn names() -> impl Iterator<Item = &'static str> {
    StopReason::ALL.iter().map(|reason| reason.as_str()).chain([UNKNOWN])
}

fn message(reason: &str, options: &MessageOptions) -> Value {
    let said = stop_reason_to_user_message(reason, options.can_retry);
    let same = names().find(|name| stop_reason_to_user_message(name, options.can_retry) == said);
    json!({
        "nonEmpty": !said.is_empty(),
        "sameTextAs": same,
        "canRetryChangesText": said != stop_reason_to_user_message(reason, !options.can_retry),
    })
}

/// The message of a reason, or of an unknown name.
fn stop_reason_to_user_message(reason: &str, can_retry: bool) -> &'static str {
    let unknown = "I could not finish this. Please try again.";
    StopReason::parse(reason).map_or(unknown, |reason| reason.user_message(can_retry))
}

fn reply(reason: &str, options: &Reply) -> Value {
    let suffix = if options.suffix.is_empty() { String::new() } else { format!(" {}", options.suffix) };
    let code = if options.include_stop_reason { format!(" [`{reason}`]") } else { String::new() };
    json!({ "equalsMessagePlus": format!("{suffix}{code}") })
}
