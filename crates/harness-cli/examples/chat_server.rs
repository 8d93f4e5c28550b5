//! A scripted chat-completions endpoint for the examples `customer-support` and `folder-report`: it plays the
//! model's side of a few conversations, so that their recordings can be written without a key.
//!
//! ```sh
//! cargo run -p harness-cli --example chat_server -- 127.0.0.1:8080
//! ```
//!
//! and in another terminal, from the workspace's folder, for each conversation of [`conversations`]:
//!
//! ```sh
//! cargo run -p harness-cli -- run fixtures/examples/customer-support/harness.yaml \
//!     "Where is my order 1042?" --base-url http://127.0.0.1:8080/v1 \
//!     --record fixtures/examples/customer-support/recordings/where-is-my-order.jsonl
//! ```
//!
//! The `record.sh` of each example does both.
#![expect(clippy::disallowed_methods, reason = "an example is a program of its own")]

#[path = "../tests/support/sse.rs"]
mod sse;

use std::io::Write as _;
use std::process::ExitCode;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};
use sse::Answer;

/// A question and the answers that the model gives, one per request.
struct Conversation {
    question: &'static str,
    answers: Vec<Answer>,
}

fn conversations() -> [Conversation; 5] {
    let order = |id: &str| json!({ "order_id": id });
    [
        Conversation { question: "Write the report.", answers: report() },
        Conversation {
            question: "Where is my order 1042?",
            answers: vec![
                Answer::call("call_1", "handoff_to_orders", &json!({})),
                Answer::call("call_2", "find_order", &order("1042")).and_call(
                    "call_3",
                    "track_parcel",
                    &order("1042"),
                ),
                Answer::text(
                    "Your order 1042, the Trail tent 2P, is on its way with Nordpost: the parcel NP-77342 was \
                     last seen at the Gothenburg depot and is expected on 14 March 2026.",
                ),
            ],
        },
        Conversation {
            question: "Which of my orders 1040, 1041 and 1042 are still on their way?",
            answers: three_orders(),
        },
        Conversation {
            question: "My socks from order 1040 have holes. I want my money back.",
            answers: vec![
                Answer::call("call_1", "handoff_to_refunds", &json!({})),
                Answer::call("call_2", "find_order", &order("1040")),
                Answer::call("call_3", "issue_refund", &json!({ "order_id": "1040", "amount_cents": 4470 })),
                Answer::text(
                    "I am sorry about the Merino socks. I have refunded 44.70 EUR for order 1040; the \
                     reference is RF-1040.",
                ),
            ],
        },
        Conversation {
            question: "Please refund order 1041.",
            answers: vec![
                Answer::call("call_1", "handoff_to_refunds", &json!({})),
                Answer::call("call_2", "find_order", &order("1041")),
                Answer::text(
                    "Order 1041, the Headlamp, was refunded already, and an order can be refunded only once, so \
                     I cannot pay anything back for it.",
                ),
            ],
        },
    ]
}

/// Where three orders are: two calls at once, and a call of one that is not asked for.
fn three_orders() -> Vec<Answer> {
    let order = |id: &str| json!({ "order_id": id });
    vec![
        Answer::call("call_1", "handoff_to_orders", &json!({})),
        Answer::text("I will look all three of them up.")
            .and_call("call_2", "find_order", &order("1040"))
            .and_call("call_3", "find_order", &order("1041"))
            .and_call("call_4", "find_order", &order("1042")),
        Answer::call("call_5", "track_parcel", &order("1042")).and_call(
            "call_6",
            "track_parcel",
            &order("1043"),
        ),
        Answer::text(
            "Only order 1042, the Trail tent 2P: its parcel NP-77342 is at the Gothenburg depot. Orders 1040 \
             and 1041 have arrived \u{2013} and 1043, which you did not ask for, has no parcel yet.",
        ),
    ]
}

/// How the report of `folder-report` is written: the first time that the work is called done, it is not.
fn report() -> Vec<Answer> {
    let read = |name: &str| json!({ "name": name });
    let file = |path: &str, content: &str| json!({ "path": path, "content": content });
    let done = |ids: &[&str]| {
        let done = |id: &&str| json!({ "item_id": id, "status": "done" });
        json!({ "items": ids.iter().map(done).collect::<Vec<_>>() })
    };
    let items = json!({ "items": [
        { "title": "Summary of the notes" },
        { "title": "Numbers" },
        { "title": "Open questions" },
        { "title": "Cover note", "role": "deliverable" },
    ] });
    vec![
        Answer::call("c1", "work_item_add", &items).and_call("c2", "list_notes", &json!({})),
        Answer::call("c3", "read_note", &read("flour.md"))
            .and_call("c4", "read_note", &read("oven.md"))
            .and_call("c5", "read_note", &read("saturday.md")),
        // Alone, so that its result has the same number in every run.
        Answer::call("c6", "count_words", &json!({})),
        Answer::call("c7", "file_write", &file("report/summary.md", SUMMARY))
            .and_call("c8", "file_write", &file("report/numbers.json", "{\"notes\": 3, \"words\": 98}\n"))
            .and_call("c9", "work_item_update", &done(&["00000001", "00000002"])),
        Answer::call(
            "c10",
            "work_complete",
            &json!({ "summary": "The report is written.", "confidence": 0.8 }),
        ),
        Answer::call("c11", "file_write", &file("report/open-questions.md", QUESTIONS)).and_call(
            "c12",
            "work_item_set_artifact",
            &json!({ "item_id": "00000004", "artifact": COVER_NOTE }),
        ),
        Answer::call("c13", "work_item_update", &done(&["00000003", "00000004"])),
        Answer::text("The report is there; read report/summary.md first.").and_call(
            "c14",
            "work_complete",
            &json!({
                "summary": "A report of three files about the notes: summary, numbers and open questions.",
                "deliverables": ["report/summary.md", "report/numbers.json", "report/open-questions.md"],
                "confidence": 0.9,
            }),
        ),
    ]
}

const SUMMARY: &str = "\
# What the notes say

- The oven loses heat at its door; a new seal was ordered on 3 March.
- The last delivery of flour was two sacks of rye short.
- On Saturday rye bread was sold out at half past ten.
";

const QUESTIONS: &str = "\
# What the notes leave open

- Why was the delivery of rye short? Nobody has asked the mill.
- Is there to be a second card reader, so that a second till can open?
";

const COVER_NOTE: &str = "\
The rye that was missing in the delivery and the rye bread that was sold out on Saturday may be
one story: ask the mill first.
";

/// What is looked at of a request.
#[derive(Deserialize)]
struct Request {
    model: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

/// The next answer: the conversation is known by its question, the place in it by the number of answers
/// that the request already holds.
fn next_answer(request: &Request) -> Option<Answer> {
    let question = request.messages.iter().find(|message| message.role == "user")?.content.as_str()?;
    let given = request.messages.iter().filter(|message| message.role == "assistant").count();
    let all = conversations();
    all.iter().find(|known| known.question == question)?.answers.get(given).cloned()
}

async fn answer(Json(request): Json<Request>) -> Response {
    if let Some(answer) = next_answer(&request) {
        return ([(CONTENT_TYPE, "text/event-stream")], answer.body(&request.model)).into_response();
    }
    let error = json!({ "error": { "message": "the script has no answer for this conversation" } });
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
}

async fn serve(address: &str) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "http://{}/v1", listener.local_addr()?)?;
    axum::serve(listener, Router::new().route("/v1/chat/completions", post(answer))).await
}

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(&address))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "{address}: {fault}");
            ExitCode::FAILURE
        }
    }
}
