//! Two records side by side.

use std::collections::{BTreeSet, HashMap};

use harness_core::{Json, canonical};
use serde::{Deserialize, Serialize};

use super::calls::{ExtractedCall, extract_tool_calls};
use super::entries::{GuardrailDecision, PolicyDecision};
use super::run_record::RunRecord;

/// What of two records can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Section {
    /// The text for the user.
    Response,
    /// The calls: which, with what arguments, with what output.
    ToolCalls,
    /// What policies decided.
    Policy,
    /// What guardrails decided.
    Guardrails,
    /// The caller's own data.
    Metadata,
}

impl Section {
    const ALL: [Self; 5] = [Self::Response, Self::ToolCalls, Self::Policy, Self::Guardrails, Self::Metadata];
}

/// Which sections are compared. Default: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CompareOptions {
    /// Only these; `None` is all.
    pub include_sections: Option<BTreeSet<Section>>,
    /// All but these.
    pub exclude_sections: BTreeSet<Section>,
}

impl CompareOptions {
    /// All sections but one.
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

/// How two records compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Whether there is no difference.
    pub equal: bool,
    /// Section by section.
    pub summary: Summary,
    /// In numbers.
    pub metrics: Metrics,
    /// Each difference with its place.
    pub differences: Vec<Difference>,
}

/// What is the same. A section that is not compared counts as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// The text for the user.
    pub same_final_response: bool,
    /// The calls and their arguments, in order. Outputs do not count.
    pub same_tool_call_shape: bool,
    /// What policies decided.
    pub same_policy_decisions: bool,
    /// What guardrails decided.
    pub same_guardrail_decisions: bool,
}

/// Two records in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metrics {
    /// UTF-16 units of the left response.
    pub response_length_a: u64,
    /// UTF-16 units of the right response.
    pub response_length_b: u64,
    /// Calls on the left.
    pub tool_calls_a: u64,
    /// Calls on the right.
    pub tool_calls_b: u64,
    /// Calls on both sides, by name and arguments, in whatever order.
    pub matched_tool_calls: u64,
    /// Calls on the left alone.
    pub missing_tool_calls: u64,
    /// Calls on the right alone.
    pub extra_tool_calls: u64,
}

/// What sort of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// Both sides have it, and it differs.
    Mismatch,
    /// The left side lacks it.
    MissingLeft,
    /// The right side lacks it.
    MissingRight,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Where: `response`, `toolCalls[2].argsHash`, …
    pub path: String,
    /// What sort.
    pub kind: DifferenceKind,
    /// The left value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Json>,
    /// The right value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Json>,
}

/// Characters of a value that a line shows.
const SHOWN: usize = 120;

impl Difference {
    /// The difference as one line for people.
    pub fn line(&self) -> String {
        let shown = |side: &Option<Json>| {
            let text = side.as_ref().map_or("nothing", Json::text);
            let mut short: String = text.chars().take(SHOWN).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            short
        };
        format!("{}: {} → {}", self.path, shown(&self.left), shown(&self.right))
    }
}

impl Comparison {
    /// The differences as lines for people; empty when there are none.
    pub fn text(&self) -> String {
        self.differences.iter().fold(String::new(), |text, difference| text + &difference.line() + "\n")
    }
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    /// Notes a difference, unless the two are the same. Whether they were.
    fn check(&mut self, path: impl Into<String>, left: Option<Json>, right: Option<Json>) -> bool {
        let kind = match (&left, &right) {
            (Some(left), Some(right)) if canonical::text(left) == canonical::text(right) => return true,
            (None, None) => return true,
            (Some(_), Some(_)) => DifferenceKind::Mismatch,
            (None, Some(_)) => DifferenceKind::MissingLeft,
            (Some(_), None) => DifferenceKind::MissingRight,
        };
        self.0.push(Difference { path: path.into(), kind, left, right });
        false
    }

    fn check_value<T: Serialize + ?Sized>(&mut self, path: impl Into<String>, left: &T, right: &T) -> bool {
        self.check(path, Json::of(left).ok(), Json::of(right).ok())
    }

    /// Compares two lists, field by field. Whether they were the same.
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

/// Compares two records.
///
/// Times, event numbers and call ids do not count: two runs of the same candidate that did the same are
/// equal. Tool outputs are compared and reported, but do not change
/// [`same_tool_call_shape`](Summary::same_tool_call_shape).
pub fn compare_records(left: &RunRecord, right: &RunRecord, options: &CompareOptions) -> Comparison {
    let mut found = Differences::default();
    let (calls_a, calls_b) = (extract_tool_calls(left), extract_tool_calls(right));
    let mut summary = Summary {
        same_final_response: true,
        same_tool_call_shape: true,
        same_policy_decisions: true,
        same_guardrail_decisions: true,
    };
    for section in Section::ALL.into_iter().filter(|section| options.has(*section)) {
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

/// Policy decisions without what differs between two runs that did the same.
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
