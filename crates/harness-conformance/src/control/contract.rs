//! Contracts, judged on a transcript, files and data of the source's form.

use std::collections::BTreeMap;

use harness_core::Json;
use harness_core::contract::{Coverage, EvidenceIndex, Facts, FileFact, TaskContract};
use serde_json::{Map, Value, json};

use super::super::turn::convert::{Done, at, list, text};

pub(super) fn run(input: &Value) -> Done<Value> {
    let contract: TaskContract =
        serde_json::from_value(at(input, "contract").clone()).map_err(|e| e.to_string())?;
    let mut coverage = match input.get("ledger") {
        Some(ledger) => serde_json::from_value(ledger.clone()).map_err(|e| e.to_string())?,
        None => Coverage::of(&contract),
    };
    let index = evidence(list(input, "transcript"));
    let files = files(&contract, input);
    let data: BTreeMap<String, Value> =
        at(input, "context").as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut facts = Facts::new(&index);
    (facts.files, facts.data) = (&files, &data);
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

fn shown(evidence: &harness_core::contract::Evidence) -> Value {
    json!({ "event_ref": evidence.event_ref, "kind": evidence.kind, "value": evidence.value })
}

/// What the source's events say, in the product's index.
pub(crate) fn evidence(transcript: &[Value]) -> EvidenceIndex {
    let mut index = EvidenceIndex::new();
    for event in transcript {
        let (id, data) = (text(event, "event_id"), at(event, "data"));
        match text(event, "event_type") {
            "tool_result" => {
                let error = at(data, "error");
                let error = (!error.is_null() && error != "" && error != false)
                    .then(|| error.as_str().map_or_else(|| error.to_string(), ToOwned::to_owned));
                index.note_result(id, text(data, "tool_name"), Json::empty_object(), error, None);
            }
            "agent_response" if data.get("message").is_some() => index.note_answer(id, text(data, "message")),
            _ => {}
        }
    }
    index
}

/// The files that the contract asks for, as the case's working folder has them.
fn files(contract: &TaskContract, input: &Value) -> BTreeMap<String, FileFact> {
    let named = |key: &str| list(input, key).iter().filter_map(Value::as_str).map(ToOwned::to_owned);
    let (files, folders): (Vec<_>, Vec<_>) = (named("files").collect(), named("dirs").collect());
    let fact = |path: &str| {
        if files.iter().any(|file| file == path) {
            FileFact::File { bytes: 0, digest: None }
        } else if folders
            .iter()
            .chain(&files)
            .any(|known| known == path || known.starts_with(&format!("{path}/")))
        {
            FileFact::NotAFile
        } else {
            FileFact::Missing
        }
    };
    contract.files().map(|path| (path.to_owned(), fact(path))).collect()
}
