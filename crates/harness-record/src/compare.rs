//! Comparison of two records.

use std::collections::{BTreeSet, HashMap};

use harness_core::Json;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::calls::{ExtractedCall, extract_tool_calls};
use super::difference::Difference;
use super::entries::{GuardrailDecision, PolicyDecision};
use super::run_record::RunRecord;

/// Section of a record.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::VariantArray,
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Section {
    /// Answer for the user.
    Response,
    /// Calls with arguments and output.
    ToolCalls,
    /// Policy decisions.
    Policy,
    /// Guardrail decisions.
    Guardrails,
    /// Data of the caller.
    Metadata,
}

/// Selection of sections. Default all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CompareOptions {
    /// Included sections; `None` includes all.
    pub include_sections: Option<BTreeSet<Section>>,
    /// Excluded sections.
    pub exclude_sections: BTreeSet<Section>,
}

impl CompareOptions {
    /// Excludes a section.
    #[must_use]
    pub fn without(mut self, section: Section) -> Self {
        self.exclude_sections.insert(section);
        self
    }

    fn has(&self, section: Section) -> bool {
        let included = self.include_sections.as_ref().is_none_or(|sections| sections.contains(&section));
        included && !self.exclude_sections.contains(&section)
    }
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Whether there are no differences.
    pub equal: bool,
    /// Result by section.
    pub summary: Summary,
    /// Figures of the comparison.
    pub metrics: Metrics,
    /// Differences with their paths.
    pub differences: Vec<Difference>,
}

/// Result by section. A section that is not compared counts as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// Whether the answers are equal.
    pub same_final_response: bool,
    /// Whether calls and arguments are equal, in order and without outputs.
    pub same_tool_call_shape: bool,
    /// Whether policy decisions are equal.
    pub same_policy_decisions: bool,
    /// Whether guardrail decisions are equal.
    pub same_guardrail_decisions: bool,
}

/// Figures of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metrics {
    /// UTF-16 units of the left answer.
    pub response_length_a: u64,
    /// UTF-16 units of the right answer.
    pub response_length_b: u64,
    /// Number of calls on the left.
    pub tool_calls_a: u64,
    /// Number of calls on the right.
    pub tool_calls_b: u64,
    /// Number of calls on both sides, by name and arguments in any order.
    pub matched_tool_calls: u64,
    /// Number of calls only on the left.
    pub missing_tool_calls: u64,
    /// Number of calls only on the right.
    pub extra_tool_calls: u64,
}

impl Comparison {
    /// Differences as human-readable lines.
    pub fn text(&self) -> String {
        self.differences.iter().fold(String::new(), |text, difference| text + &difference.line() + "\n")
    }
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    /// Compares two values and returns whether they are equal.
    fn check(&mut self, path: impl Into<String>, left: Option<Json>, right: Option<Json>) -> bool {
        let found = Difference::of(path, left, right);
        let is_equal = found.is_none();
        self.0.extend(found);
        is_equal
    }

    fn check_value<T: Serialize + ?Sized>(&mut self, path: impl Into<String>, left: &T, right: &T) -> bool {
        self.check(path, Json::of(left).ok(), Json::of(right).ok())
    }

    /// Compares two lists field by field and returns whether they are equal.
    fn lists<T: Serialize>(&mut self, path: &str, left: &[T], right: &[T]) -> bool {
        let mut same = self.check_value(format!("{path}.length"), &left.len(), &right.len());
        for at in 0..left.len().max(right.len()) {
            let (left, right) = (fields(left.get(at)), fields(right.get(at)));
            if let (Some(left), Some(right)) = (&left, &right) {
                let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
                for name in names {
                    let (left, right) = (left.get(name).cloned(), right.get(name).cloned());
                    same &= self.check(format!("{path}[{at}].{name}"), left, right);
                }
            } else {
                let value = |side: Option<HashMap<String, Json>>| Json::of(&side?).ok();
                same &= self.check(format!("{path}[{at}]"), value(left), value(right));
            }
        }
        same
    }
}

fn fields<T: Serialize>(value: Option<&T>) -> Option<HashMap<String, Json>> {
    Json::of(value?).ok()?.to().ok()
}

/// Compares two records, ignoring times, event numbers and call ids. Different tool outputs are reported, but do not
/// change [`same_tool_call_shape`](Summary::same_tool_call_shape).
pub fn compare_records(left: &RunRecord, right: &RunRecord, options: &CompareOptions) -> Comparison {
    let mut found = Differences::default();
    let (calls_a, calls_b) = (extract_tool_calls(left), extract_tool_calls(right));
    let mut summary = Summary {
        same_final_response: true,
        same_tool_call_shape: true,
        same_policy_decisions: true,
        same_guardrail_decisions: true,
    };
    for section in Section::VARIANTS.iter().filter(|section| options.has(**section)) {
        match section {
            Section::Response => {
                let text = |record: &RunRecord| record.response.as_deref().map(Json::string);
                summary.same_final_response = found.check("response", text(left), text(right));
            }
            Section::ToolCalls => {
                summary.same_tool_call_shape = compare_calls(&mut found, &calls_a, &calls_b);
            }
            Section::Policy => {
                let (a, b) = (policies(&left.policy_decisions), policies(&right.policy_decisions));
                summary.same_policy_decisions = found.lists("policyDecisions", &a, &b);
            }
            Section::Guardrails => {
                let (a, b) = (guardrails(&left.guardrail_decisions), guardrails(&right.guardrail_decisions));
                summary.same_guardrail_decisions = found.lists("guardrailDecisions", &a, &b);
            }
            Section::Metadata => {
                found.check("metadata", left.metadata.clone(), right.metadata.clone());
            }
        }
    }
    let metrics = metrics(left, right, &calls_a, &calls_b);
    Comparison { equal: found.0.is_empty(), summary, metrics, differences: found.0 }
}

fn compare_calls(found: &mut Differences, left: &[ExtractedCall], right: &[ExtractedCall]) -> bool {
    let mut same = found.check_value("toolCalls.length", &left.len(), &right.len());
    for at in 0..left.len().max(right.len()) {
        let path = format!("toolCalls[{at}]");
        let (Some(a), Some(b)) = (left.get(at), right.get(at)) else {
            let value = |call: Option<&ExtractedCall>| {
                Json::of(&CallShape { name: call?.name.as_str(), args_hash: &call?.args_hash }).ok()
            };
            same &= found.check(path, value(left.get(at)), value(right.get(at)));
            continue;
        };
        same &= found.check_value(format!("{path}.name"), a.name.as_str(), b.name.as_str());
        same &= found.check_value(format!("{path}.argsHash"), &a.args_hash, &b.args_hash);
        same &= found.check_value(format!("{path}.hasOutput"), &a.has_output, &b.has_output);
        found.check(format!("{path}.output"), a.output.clone(), b.output.clone());
    }
    same
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallShape<'a> {
    name: &'a str,
    args_hash: &'a str,
}

/// Policy decisions without the fields that differ between equal runs.
fn policies(decisions: &[PolicyDecision]) -> Vec<PolicyDecision> {
    let without = |decision: &PolicyDecision| PolicyDecision {
        seq: 0,
        timestamp: String::new(),
        call_id: "".into(),
        ..decision.clone()
    };
    decisions.iter().map(without).collect()
}

fn guardrails(decisions: &[GuardrailDecision]) -> Vec<GuardrailDecision> {
    let without = |decision: &GuardrailDecision| GuardrailDecision {
        seq: 0,
        timestamp: String::new(),
        ..decision.clone()
    };
    decisions.iter().map(without).collect()
}

fn metrics(left: &RunRecord, right: &RunRecord, a: &[ExtractedCall], b: &[ExtractedCall]) -> Metrics {
    let units =
        |record: &RunRecord| record.response.as_deref().unwrap_or_default().encode_utf16().count() as u64;
    let mut waiting: HashMap<(&str, &str), u64> = HashMap::new();
    for call in a {
        *waiting.entry((call.name.as_str(), &call.args_hash)).or_default() += 1;
    }
    let mut matched = 0;
    for call in b {
        if let Some(count @ 1..) = waiting.get_mut(&(call.name.as_str(), call.args_hash.as_str())) {
            *count -= 1;
            matched += 1;
        }
    }
    Metrics {
        response_length_a: units(left),
        response_length_b: units(right),
        tool_calls_a: a.len() as u64,
        tool_calls_b: b.len() as u64,
        matched_tool_calls: matched,
        missing_tool_calls: a.len() as u64 - matched,
        extra_tool_calls: b.len() as u64 - matched,
    }
}
