//! A tool whose calls wait for approval.

use harness::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
}

pub(super) async fn run(model: impl Model + 'static) -> Result<String, harness::HarnessError> {
    let book =
        tool_fn("book", "Books a trip", |city: City, _| async move { format!("booked {}", city.name) });
    let harness = Harness::new(model).tool(book.needs_approval()).build()?;
    let report = harness.prompt("Book Oslo.").await?;
    let from = report.decide(|call| {
        if call.tool.as_str() == "book" {
            Decision::Granted
        } else {
            Decision::Denied { reason: "only trips may be booked".to_owned() }
        }
    });
    Ok(harness.resume(from).await?.answer().to_owned())
}
