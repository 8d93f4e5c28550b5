//! The signal that something is not wanted any more.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

/// Tells work that it is not wanted any more. Clones share the signal; it fires once and stays.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<CancellationToken>);

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self(Arc::new(CancellationToken::new()))
    }

    /// A signal that nobody will fire.
    pub fn never() -> Self {
        Self::new()
    }

    /// A signal that fires with this one, and can fire alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(self.0.child_token()))
    }

    /// Fires.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it has fired.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Completes when it fires; at once when it has.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}
