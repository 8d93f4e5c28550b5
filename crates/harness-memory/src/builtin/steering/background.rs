//! Verdicts in the background.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::judge::Case;
use crate::layer::{Decision, LayerCx};

/// Concurrent judgements of one execution; further ones are skipped.
const MOST_AT_WORK: usize = 8;
/// Objections that wait to be shown; of more, the oldest go.
const MOST_WAITING: usize = 32;

/// Background judgements by execution.
#[derive(Clone, Default)]
pub(super) struct Background(Arc<Mutex<HashMap<Arc<str>, Work>>>);

#[derive(Default)]
struct Work {
    tasks: Vec<JoinHandle<()>>,
    objections: Vec<(Arc<str>, String)>,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Background").field(&self.0.lock().len()).finish()
    }
}

impl Background {
    /// Begins to judge a case. Without a tokio runtime, or with too many at work, it is not judged.
    pub(super) fn begin(&self, case: Case, cx: &LayerCx) {
        let Ok(runtime) = Handle::try_current() else { return };
        let execution = Arc::clone(&cx.execution.id);
        let mut all = self.0.lock();
        let work = all.entry(Arc::clone(&execution)).or_default();
        work.tasks.retain(|task| !task.is_finished());
        if work.tasks.len() >= MOST_AT_WORK {
            return;
        }
        let (this, cx) = (self.clone(), cx.clone());
        work.tasks.push(runtime.spawn(async move {
            // A judge that fails has no objection: nobody waits for it, and the work went on long ago.
            let Ok(decision) = case.decide(&cx).await else { return };
            if decision != Decision::Allow {
                let guidance = decision.guidance().unwrap_or("the rule is violated").to_owned();
                this.object(&execution, case.rule, guidance);
            }
        }));
    }

    fn object(&self, execution: &Arc<str>, rule: Arc<str>, guidance: String) {
        let mut all = self.0.lock();
        // An execution that was let go of meanwhile has no entry, and gets none any more.
        let Some(work) = all.get_mut(execution) else { return };
        work.objections.push((rule, guidance));
        let surplus = work.objections.len().saturating_sub(MOST_WAITING);
        work.objections.drain(..surplus);
    }

    /// The objections that came since the last time.
    pub(super) fn objections(&self, execution: &Arc<str>) -> Vec<(Arc<str>, String)> {
        let mut all = self.0.lock();
        all.get_mut(execution).map(|work| std::mem::take(&mut work.objections)).unwrap_or_default()
    }

    /// Stops all judgements of an execution and forgets it.
    pub(super) fn release(&self, execution: &Arc<str>) {
        let work = self.0.lock().remove(execution);
        for task in work.into_iter().flat_map(|work| work.tasks) {
            task.abort();
        }
    }
}
