//! One prompt with a tool.

use harness::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
}

pub(super) async fn run(model: impl Model + 'static) -> Result<String, harness::HarnessError> {
    let weather = tool_fn("weather", "Current weather of a city", |city: City, _| async move {
        format!("4 °C in {}", city.name)
    });
    let harness = Harness::new(model).tool(weather).build()?;
    Ok(harness.prompt("How cold is Oslo?").await?.answer().to_owned())
}
