//! Vectors of kind `turn-fn`: functions of source 001. So far its configuration check, `createHarness`.

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
    let function = cases.get("fn").and_then(Value::as_str).unwrap_or_default();
    let judge = |case: &Value| match function {
        "createHarness" => create_harness(case).into(),
        _ => Verdict::Skipped("turn-functions".to_owned()),
    };
    let list = cases.get("cases").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let id = |case: &Value| case.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    list.iter().map(|case| (id(case), judge(case))).collect()
}

fn create_harness(case: &Value) -> Result<(), String> {
    let config = case.pointer("/args/0").ok_or("the case has no arguments")?;
    let config = harness_core::Json::of(config).map_err(|e| e.to_string())?;
    let got = match spec_from_json(&config) {
        Ok(_) => json!({ "ok": true }),
        Err(fault) => {
            json!({ "ok": false, "error": "HarnessConfigError", "message": fault.compat_message() })
        }
    };
    let expected = case.get("expect").unwrap_or(&Value::Null);
    if got == *expected { Ok(()) } else { Err(format!("expected {expected}, got {got}")) }
}
