//! One decision of all layers on an answer or a tool call.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::ViewCx;

use super::ask::{Decided, Decision, ToolAsk};
use super::def::{Hook, LayerId, OnToolGateError};
use super::run::LayerRun;
use crate::MemoryError;

/// Guidance of several layers or rules so far.
#[derive(Debug, Default)]
pub(crate) struct Guides {
    is_guided: bool,
    texts: Vec<String>,
}

impl Guides {
    /// Adds a decision; gives a denial back.
    pub(crate) fn add(&mut self, decision: Decision) -> Option<Decision> {
        match decision {
            Decision::Allow => None,
            Decision::Guide { guidance } => {
                self.is_guided = true;
                self.texts.extend(guidance.filter(|text| !text.is_empty()));
                None
            }
            denied @ Decision::Deny { .. } => Some(denied),
        }
    }

    pub(crate) fn decision(self) -> Decision {
        match (self.is_guided, self.texts.is_empty()) {
            (false, _) => Decision::Allow,
            (true, true) => Decision::Guide { guidance: None },
            (true, false) => Decision::Guide { guidance: Some(self.texts.join("\n")) },
        }
    }
}

impl LayerRun {
    /// Decision of the layers on a tool call, by slot: the first denial ends the round with its own
    /// words alone; otherwise all guidance, one line each; otherwise no objection.
    ///
    /// A layer that fails is reported and abstains, or denies if its definition requires it.
    ///
    /// # Errors
    /// A layer that is set up wrongly.
    pub async fn judge_tool(&self, ask: &ToolAsk, cx: &ViewCx) -> Result<Decision, MemoryError> {
        let base = self.cx(cx);
        let mut guides = Guides::default();
        for (at, layer) in self.asked(Hook::BeforeTool) {
            let cx = self.cx_of(at, &base);
            let answer = self.ask(at, Hook::BeforeTool, layer.before_tool_boxed(ask, &cx)).await;
            let def = layer.layer_def();
            let denies = def.on_tool_gate_error == OnToolGateError::Deny;
            let decision = self.decided(at, Hook::BeforeTool, answer, denies.then_some(&def.id))?;
            if let Some(denied) = guides.add(decision) {
                return Ok(denied);
            }
        }
        Ok(guides.decision())
    }

    /// Decision of the layers on an answer, by the same rules; a layer that fails abstains.
    ///
    /// # Errors
    /// A layer that is set up wrongly.
    pub async fn judge_answer(&self, answer: &Arc<Message>, cx: &ViewCx) -> Result<Decision, MemoryError> {
        let base = self.cx(cx);
        let mut guides = Guides::default();
        for (at, layer) in self.asked(Hook::AfterModel) {
            let cx = self.cx_of(at, &base);
            let judged = self.ask(at, Hook::AfterModel, layer.after_model_boxed(answer, &cx)).await;
            let decision = self.decided(at, Hook::AfterModel, judged, None)?;
            if let Some(denied) = guides.add(decision) {
                return Ok(denied);
            }
        }
        Ok(guides.decision())
    }

    /// The decision of a layer, its state taken over. `gating` is the layer whose failure denies.
    fn decided(
        &self,
        at: usize,
        hook: Hook,
        answer: Result<Decided, MemoryError>,
        gating: Option<&LayerId>,
    ) -> Result<Decision, MemoryError> {
        match answer {
            Ok(decided) => {
                self.apply(at, decided.state);
                Ok(decided.decision)
            }
            Err(fault) if fault.is_config() => Err(fault),
            Err(fault) => {
                self.stack.report(at, hook, fault.clone());
                let denial = |id| {
                    Decision::deny(format!(
                        "this call is denied: the layer `{id}`, which decides about it, failed: {fault}"
                    ))
                };
                Ok(gating.map_or(Decision::Allow, denial))
            }
        }
    }
}
