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
    let mut shown = String::new();
    let from = report.decide(|call| {
        shown = format!("{} {:?}", call.tool, call.arguments);
        Decision::Granted
    });
    Ok(format!("{shown}: {}", harness.resume(from).await?.answer()))
}
