//! The README's example, through the release program: prints an answer and ends well, and with
//! `--json` every line is an object, the last one the result.

use serde_json::Map;

use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;

const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";
const QUESTION: &str = "Where is my order 1042?";

pub(super) fn run(program: &Program) -> Result<String> {
    let text = process::capture(&mut program.command(["run", EXAMPLE, QUESTION]))?;
    if text.trim().is_empty() {
        return Err(Fault::new("`harness run` printed no answer"));
    }
    let lines = process::capture(&mut program.command(["run", EXAMPLE, QUESTION, "--json"]))?;
    let mut last = Map::new();
    for line in lines.lines() {
        last =
            serde_json::from_str(line).map_err(|e| Fault::because(format!("line of --json: {line}"), e))?;
    }
    let says = |key, value: &str| last.get(key).is_some_and(|found| found == value);
    if !says("type", "result") || !says("outcome", "completed") {
        return Err(Fault::new(format!("the last line of --json is no completed result: {last:?}")));
    }
    Ok(format!("{} characters of text, {} lines of JSON", text.trim().len(), lines.lines().count()))
}
