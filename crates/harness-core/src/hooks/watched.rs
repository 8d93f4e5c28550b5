//! Asks a hook, for as long as it may take.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};

use super::HookRules;
use crate::ids::GateName;
use crate::outcome::{Fault, FaultSource};
use crate::panics::panic_text;
use crate::port::{BoxFuture, Clock, DynPostToolHook, FinishedCall, PostToolHook};
use crate::time::Millis;

/// What a hook said, or the fault that its panic or silence is.
pub(super) async fn within<T>(
    clock: &dyn Clock,
    timeout: Millis,
    asked: BoxFuture<'_, Result<T, Fault>>,
) -> Result<T, Fault> {
    let asked = AssertUnwindSafe(asked).catch_unwind();
    match select(asked, clock.sleep_until(clock.now().after(timeout))).await {
        Either::Left((Ok(answer), _)) => answer,
        Either::Left((Err(panic), _)) => {
            let text = format!("it panicked: {}", panic_text(&*panic));
            Err(Fault::new(FaultSource::Hook, "panicked", text))
        }
        Either::Right(_) => {
            let text = format!("it gave no answer within {timeout}");
            Err(Fault::new(FaultSource::Hook, "timeout", text))
        }
    }
}

/// A post-tool hook with its time limit.
pub(super) struct Timed {
    hook: Arc<dyn DynPostToolHook>,
    rules: HookRules,
    clock: Arc<dyn Clock>,
}

impl Timed {
    pub(super) fn new(hook: Arc<dyn DynPostToolHook>, rules: HookRules, clock: Arc<dyn Clock>) -> Self {
        Self { hook, rules, clock }
    }
}

impl PostToolHook for Timed {
    fn name(&self) -> GateName {
        self.hook.hook_name()
    }

    async fn after(&self, done: &FinishedCall) -> Result<(), Fault> {
        within(&*self.clock, self.rules.timeout, self.hook.after_boxed(done)).await
    }
}
