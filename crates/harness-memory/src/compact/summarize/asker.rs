//! One call to the model that summarizes.

use std::sync::Arc;

use harness_core::message::{FinishReason, Message};
use harness_core::port::{DynModel, Model, ModelRequest, PreparedAgent, ViewCx};
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, ModelName};

use super::text::{PART, line};
use super::{SummaryAsk, SummaryFault};
use crate::compact::tokens::{CharacterCounter, TokenCounter};

/// The model that summarizes, and how much it can read.
///
/// It is asked without tools and at temperature 0, so that it neither acts nor invents.
#[derive(Clone, derive_more::Debug)]
pub struct SummaryModel {
    #[debug(skip)]
    model: Arc<dyn DynModel>,
    name: Option<ModelName>,
    window: u64,
    #[debug(skip)]
    counter: Arc<dyn TokenCounter>,
}

/// Tokens of a request beside the conversation and the answer: instructions and the form of it.
const FORM: u64 = 1_024;
/// Parts of the window that a request may fill: counts are estimates.
const FILLED: (u64, u64) = (3, 4);

impl SummaryModel {
    /// This model, which can read `window` tokens. A longer conversation is summarized in parts.
    pub fn new(model: impl Model + 'static, window: u64) -> Self {
        Self { model: Arc::new(model), name: None, window, counter: Arc::new(CharacterCounter) }
    }

    /// Sets the model name of the requests. Default: that of the agent at work.
    #[must_use]
    pub fn named(self, name: impl Into<ModelName>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the token counter.
    #[must_use]
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, ..self }
    }

    pub(super) fn tokens(&self, text: &str) -> u64 {
        self.counter.count(text)
    }

    /// The conversation as texts of which each fits into a request; there is always one.
    pub(super) fn pieces(&self, ask: &SummaryAsk) -> Vec<String> {
        let previous = ask.previous.as_ref().map_or(0, |summary| self.counter.count(&summary.text));
        let taken = ask.max_tokens.saturating_mul(2).saturating_add(previous).saturating_add(FORM);
        let room = (self.window.saturating_mul(FILLED.0) / FILLED.1).saturating_sub(taken).max(FORM);
        let (mut pieces, mut piece, mut tokens) = (Vec::new(), String::new(), 0);
        for message in &ask.messages {
            // A part that fills a whole request alone would never fit.
            let line = line(message, PART.min(usize::try_from(room.saturating_mul(2)).unwrap_or(PART)));
            let cost = self.counter.count(&line);
            if tokens + cost > room && !piece.is_empty() {
                pieces.push(std::mem::take(&mut piece));
                tokens = 0;
            }
            piece.push_str(&line);
            tokens += cost;
        }
        pieces.push(piece);
        pieces
    }

    /// Asks once, charged to the ledger of `cx`; the answer's text, trimmed and not empty.
    pub(super) async fn ask(
        &self,
        system: &str,
        user: String,
        max_tokens: u64,
        cx: &ViewCx,
    ) -> Result<String, SummaryFault> {
        let settings = Json::parse(&format!(r#"{{"temperature":0,"max_tokens":{max_tokens}}}"#)).ok();
        let of_agent = || cx.prepared.as_ref().and_then(|prepared| prepared.model.clone());
        let model = self.name.clone().or_else(of_agent);
        let prepared = PreparedAgent::new("summarizer", system, []).with_model(model, settings);
        let log: Transcript = [Arc::new(Message::user(user))].into_iter().collect();
        let mut request = ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared));
        request.with_tools = false;
        request.origin = Arc::clone(&cx.origin);
        request.deadline = cx.deadline;
        request.cancel = cx.cancel.clone();
        let answer = cx.ledger.call(&*self.model, request).await;
        let answer = answer.map_err(|fault| {
            let message = format!("the model that summarizes failed ({}): {fault}", fault.code.as_str());
            SummaryFault::new(message)
        })?;
        let text = answer.joined_text().trim().to_owned();
        if matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted) {
            let why = answer.error_message.as_deref().unwrap_or("no reason given");
            return Err(SummaryFault::new(format!("the model that summarizes ended in an error: {why}")));
        }
        if text.is_empty() {
            Err(SummaryFault::new("the model that summarizes wrote nothing"))
        } else {
            Ok(text)
        }
    }
}
