//! Serves threads over HTTP on a free port, and asks one as a client would.
//!
//! `cargo run -p harness-server --example serve`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::prelude::*;
use harness_server::ServerOptions;
use serde_json::{Value, json};

/// Repeats what it is told.
struct Echo;

impl Model for Echo {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let said = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        Ok(AssistantMessage::text(format!("You said: {said}")))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Harness::new(Echo).build_runtime()?;
    let token = "0123456789abcdef0123456789abcdef";
    let options = ServerOptions::new().token(token)?;
    // The routes are an axum router: nest them in a program that has its own.
    let program = axum::Router::new().nest("/agents", harness_server::router(runtime.clone(), options));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/agents/v1/threads", listener.local_addr()?);
    let server = tokio::spawn(async move { axum::serve(listener, program).await });

    let client = reqwest::Client::new();
    let refused = client.get(&url).send().await?;
    println!("without a token: {}", refused.status());

    let created = client.post(&url).bearer_auth(token).json(&json!({"id": "ada"})).send().await?;
    println!("create: {}", created.status());
    let prompt = client.post(format!("{url}/ada/prompt?wait=true")).bearer_auth(token);
    let answered: Value = prompt.json(&json!({"text": "Hello"})).send().await?.json().await?;
    println!("answer: {}", answered.get("text").unwrap_or(&answered));

    runtime.shutdown().await;
    server.abort();
    Ok(())
}
