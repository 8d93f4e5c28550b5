//! Steers a thread while it works: one message reaches the running turn, another waits for its end.
//!
//! `cargo run -p harness --example steering`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use harness::core::Json;
use harness::core::message::{ToolCall, UserMessage};
use harness::prelude::*;
use harness::runtime::DeliveryMode;
use harness::testing::ScriptedModel;
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let search = Json::parse(r#"{"text":"ferries"}"#)?;
    let model = ScriptedModel::new([
        AssistantMessage::calls([ToolCall::new("call-1", "search", search)]),
        AssistantMessage::text("Two Norwegian ferries."),
        AssistantMessage::text("They sail at 8 and 16."),
    ]);

    // The search starts, and ends when the program says so.
    let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (has_started, may_finish) = (Arc::clone(&started), Arc::clone(&finish));
    let tool = tool_fn("search", "Searches the timetable", move |query: Query, _| {
        let (has_started, may_finish) = (Arc::clone(&has_started), Arc::clone(&may_finish));
        async move {
            has_started.notify_one();
            may_finish.notified().await;
            Ok::<_, std::io::Error>(format!("4 results for {}", query.text))
        }
    });

    let thread = Harness::new(model.clone()).tool(tool).build_runtime()?.thread("desk");
    thread.execute(UserMessage::text("Find ferries."), DeliveryMode::default())?;
    started.notified().await;
    thread.steer(UserMessage::text("Only Norwegian ones."))?;
    thread.follow_up(UserMessage::text("When do they sail?"))?;
    println!("queued while the tool runs: {}", thread.queue_len());
    finish.notify_one();
    thread.wait_idle().await;

    for (number, request) in model.requests().iter().enumerate() {
        let last = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        println!("request {} ends with {last:?}", number + 1);
    }
    let messages = thread.messages().await?;
    println!("answer: {}", messages.iter().last().map(|message| message.joined_text()).unwrap_or_default());
    Ok(())
}
