//! Asks the memory layers and the compactor.

use std::sync::Arc;

use super::op::{Running, panicked_by};
use super::ports::Ports;
use crate::cancel::Cancel;
use crate::machine::{Machine, Op, Phase, Reply, Standing};
use crate::outcome::Purpose;
use crate::port::{BoxFuture, CompactAsk, Ledger, ViewCx};

/// Starts an operation of layers or of the compactor; any other is answered as given up.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other operation comes here")]
pub(super) fn start<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
    (token, ledger): (&Cancel, &Ledger),
    op: Op,
) -> Running<'p> {
    let panicked = panicked_by(&op);
    let purpose = if matches!(op, Op::Compact { .. }) { Purpose::Compaction } else { Purpose::Layer };
    let cx = |standing: Box<Standing>| {
        let now = ports.clock.now();
        let cx = ViewCx::new(machine.log().prefix(), Arc::clone(machine.origin()), now)
            .with_progress(standing.progress)
            .with_ledger(ledger.for_purpose(purpose))
            .until(machine.cut_off(), token.clone());
        ViewCx { prepared: standing.prepared, ..cx }
    };
    if let Op::Compact { reason, plan, measured, standing } = op {
        let Some(compactor) = &ports.compactor else {
            return Running::Ready(Reply::Compacted(Ok(Box::default())));
        };
        let ask = CompactAsk::new(machine.view(plan.clone()), plan, cx(standing))
            .because(reason)
            .with_measured(measured.map(|measured| *measured));
        let asked = async move { Reply::Compacted(compactor.compact_boxed(ask).await.map(Box::new)) };
        return Running::Other(Box::pin(asked), panicked);
    }
    let Some(layers) = &ports.layers else { return Running::Ready(unlayered(op)) };
    let asked: BoxFuture<'p, Reply> = match op {
        Op::Begin { standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::Noted(layers.begin_boxed(&cx).await) })
        }
        Op::Append { source, messages, standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::Appended(layers.append_boxed(source, messages, &cx).await) })
        }
        Op::Recall { standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::Recalled(layers.recall_boxed(&cx).await) })
        }
        Op::AfterModel { answer, standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::AfterModel(layers.after_model_boxed(&answer, &cx).await) })
        }
        Op::LayerStore { answer, standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::Noted(layers.store_boxed(&answer, &cx).await) })
        }
        Op::Complete { outcome, standing } => {
            let cx = cx(standing);
            Box::pin(async move { Reply::Noted(layers.complete_boxed(outcome, &cx).await) })
        }
        other => return Running::Ready(unlayered(other)),
    };
    Running::Other(asked, panicked)
}

/// What layers answer that are not there.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other operation comes here")]
fn unlayered(op: Op) -> Reply {
    match op {
        Op::Append { messages, .. } => Reply::Appended(Ok(messages)),
        Op::Recall { .. } => Reply::Recalled(Ok(None)),
        Op::AfterModel { .. } => Reply::AfterModel(Ok(None)),
        Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => Reply::Noted(Ok(())),
        _ => Reply::Interrupted { partial: None },
    }
}
