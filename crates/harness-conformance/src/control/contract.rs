//! Contracts, judged on a transcript, files and data of the source's form.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::tools::{FolderWorkspace, JsonSchemas};
use harness_control::contract::{Coverage, Evidence, EvidenceIndex, Facts, FactsFound};
use harness_control::{ControlSpec, ControlState, StandardFacts};
use harness_core::decide::{DecideCx, FactSource};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Json, Time};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Contract, Told, What};
use crate::Done;
use crate::case::block_on;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    contract: Contract,
    ledger: Option<Ledger>,
    #[serde(default)]
    transcript: Vec<Told>,
    #[serde(default)]
    context: BTreeMap<String, Value>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    dirs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    contract_id: Option<String>,
    coverage: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    requirement_id: String,
    status: Value,
    #[serde(default)]
    evidence: Vec<Proof>,
    notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    event_ref: String,
    kind: Value,
    value: String,
}

pub(super) fn run(input: Input) -> Done<Value> {
    let contract = input.contract.0;
    let mut coverage = match input.ledger {
        Some(ledger) => ledger.coverage()?,
        None => Coverage::of(&contract),
    };
    let index = evidence(&input.transcript);
    let spec = ControlSpec::default().with_contract(contract.clone());
    let found = block_on(found(&spec, &input.files, &input.dirs, &input.context))??;
    let mut facts = Facts::new(&index);
    (facts.files, facts.data, facts.custom, facts.schemas) =
        (&found.files, &found.data, &found.checks, &JsonSchemas);
    let verification = contract.verify(&mut coverage, &facts);

    let results: Map<String, Value> = verification
        .results
        .iter()
        .map(|(id, result)| {
            let evidence = result.evidence.as_ref().map(shown);
            let result =
                json!({ "success": result.success, "message": result.message, "evidence": evidence });
            (id.clone(), result)
        })
        .collect();
    let ledger: Map<String, Value> = coverage
        .coverage
        .iter()
        .map(|(id, entry)| {
            let evidence: Vec<_> = entry.evidence.iter().map(shown).collect();
            (id.clone(), json!({ "status": entry.status.as_str(), "evidence": evidence }))
        })
        .collect();
    Ok(json!({
        "satisfied": verification.satisfied,
        "message": verification.message,
        "unmet_requirements": verification.unmet,
        "results": results,
        "ledger": ledger,
        "completion_percentage": coverage.percent(&contract),
        "gap_report": contract.gaps(&coverage),
    }))
}

fn shown(evidence: &Evidence) -> Value {
    json!({ "event_ref": evidence.event_ref, "kind": evidence.kind, "value": evidence.value })
}

impl Ledger {
    fn coverage(self) -> Done<Coverage> {
        let entry = |(id, entry): (String, Entry)| {
            let proof = |proof: &Proof| json!({ "event_ref": proof.event_ref, "kind": proof.kind, "value": proof.value });
            let evidence: Vec<_> = entry.evidence.iter().map(proof).collect();
            let value = json!({
                "requirement_id": entry.requirement_id, "status": entry.status, "evidence": evidence,
                "notes": entry.notes.unwrap_or_default(),
            });
            (id, value)
        };
        let coverage: Map<String, Value> = self.coverage.into_iter().map(entry).collect();
        let ledger = json!({ "contract_id": self.contract_id.unwrap_or_default(), "coverage": coverage });
        serde_json::from_value(ledger).map_err(|e| e.to_string())
    }
}

/// Content of the source's events, in the product's index.
fn evidence(transcript: &[Told]) -> EvidenceIndex {
    let mut index = EvidenceIndex::new();
    for Told { id, what } in transcript {
        match what {
            What::Result(data) => {
                let error = data.error.clone().filter(|error| !error.is_empty());
                let preview = data.preview.as_deref();
                index.note_result(id, &data.tool_name, Json::empty_object(), error, preview);
            }
            What::Response(data) => {
                if let Some(said) = &data.message {
                    index.note_answer(id, said);
                }
            }
            // What was called is in the result.
            What::Call(_) | What::Start => {}
        }
    }
    index
}

/// Facts that the product collects: files in a real directory, and the data of the case.
async fn found(
    spec: &ControlSpec,
    files: &[String],
    folders: &[String],
    context: &BTreeMap<String, Value>,
) -> Done<FactsFound> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let place = |name: &String| folder.path().join(name.trim_start_matches('/'));
    for name in folders {
        std::fs::create_dir_all(place(name)).map_err(|e| e.to_string())?;
    }
    for name in files {
        let path = place(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder.path())).map_err(|e| e.to_string())?;
        std::fs::write(path, "").map_err(|e| e.to_string())?;
    }
    let workspace = FolderWorkspace::open(folder.path()).map_err(|e| e.to_string())?;
    let facts =
        StandardFacts::default().with_workspace(Arc::new(workspace)).with_schemas(Arc::new(JsonSchemas));
    let facts = context.iter().fold(facts, |facts, (name, data)| facts.with_data(name, data.clone()));
    let cx = DecideCx::new(Transcript::default().prefix(), Arc::default(), Cancel::never(), Time(0));
    let ask = Json::of(&ControlState::new(spec).asks(spec)).map_err(|e| e.to_string())?;
    let found = facts.gather(&ask, &cx).await.map_err(|e| e.to_string())?;
    found.to().map_err(|e| e.to_string())
}
