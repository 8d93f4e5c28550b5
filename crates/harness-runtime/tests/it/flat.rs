//! Nothing is kept of a turn but what it said.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, Usage};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest};
use harness_runtime::{DeliveryMode, ModelChoice, Thread, ThreadConfig};

use crate::support::{builder, still};

/// Answers at once.
struct Instant;

impl Model for Instant {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        deltas.part(DeltaPart::Text("yes".to_owned()));
        let mut answer = AssistantMessage::text("yes");
        answer.usage = Some(Arc::new(Usage::tokens(10, 1)));
        Ok(answer)
    }
}

/// Turns behind which the events that a thread keeps are all of other turns.
const FORGOTTEN: usize = 500;

async fn turns(thread: &Thread, count: usize) {
    for turn in 0..count {
        if turn % 2 == 0 {
            thread.prompt("go").await.expect("a turn");
        } else {
            thread.execute(Message::user("go"), DeliveryMode::NextTurn).expect("a place in the queue");
            thread.response().await.expect("a turn");
            thread.wait_idle().await;
        }
    }
    thread.seed_history(Vec::<Message>::new()).await.expect("an empty transcript");
}

#[test]
fn ten_thousand_turns_leave_nothing_behind_but_the_transcript() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let runtime =
        tokio.block_on(async { builder(ThreadConfig::new(ModelChoice::new(Instant), still())).build() });
    let thread = runtime.thread("t");
    tokio.block_on(turns(&thread, FORGOTTEN));
    let grown = allocation_counter::measure(|| {
        tokio.block_on(async {
            turns(&thread, 10_000).await;
            turns(&thread, FORGOTTEN).await;
        });
    });
    assert!(grown.bytes_current < 32 * 1_024, "{} bytes more than before", grown.bytes_current);
}
