//! Vectors of kind `turn-fn`: functions of source 001. So far its configuration check, `createHarness`.

#![expect(clippy::indexing_slicing, reason = "indexing a JSON value gives null, it never panics")]

use std::path::Path;

use harness_core::turn::source_001::spec_from_json;
use serde_json::{Value, json};

use crate::conformance::Verdict;
use crate::repo;

/// Runs every case of the file.
pub(crate) fn run(path: &Path) -> Vec<(String, Verdict)> {
    let cases = repo::read(path)
        .map_err(|e| e.to_string())
        .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|e| e.to_string()));
    let cases = match cases {
        Ok(cases) => cases,
        Err(fault) => return vec![(path.display().to_string(), Verdict::Failed(fault))],
    };
    let function = cases["fn"].as_str().unwrap_or_default();
    let judge = |case: &Value| match function {
        "createHarness" => create_harness(case).into(),
        _ => Verdict::Skipped("turn-functions".to_owned()),
    };
    let list = cases["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|case| (case["id"].as_str().unwrap_or_default().to_owned(), judge(case))).collect()
}

fn create_harness(case: &Value) -> Result<(), String> {
    let config = harness_core::Json::of(&case["args"][0]).map_err(|e| e.to_string())?;
    let got = match spec_from_json(&config) {
        Ok(_) => json!({ "ok": true }),
        Err(fault) => {
            json!({ "ok": false, "error": "HarnessConfigError", "message": fault.compat_message() })
        }
    };
    if got == case["expect"] { Ok(()) } else { Err(format!("expected {}, got {got}", case["expect"])) }
}
