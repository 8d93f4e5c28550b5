//! Whether workers respond.

use std::time::Duration;

use reqwest::Client;

use super::admin::Deployment;
use super::engine::{Engine, EngineError, unreachable, url};

impl Engine {
    /// The versions of the server with which this crate is tested.
    pub const TESTED: &str = "1.7";

    /// Whether a worker responds at the URL of a deployment, asked from this machine, within `limit`. The engine may reach
    /// other networks than this machine.
    ///
    /// # Errors
    /// [`EngineError::Url`], [`EngineError::Unreachable`].
    pub async fn reach(&self, deployment: &Deployment, limit: Duration) -> Result<(), EngineError> {
        let health = url(&deployment.url)?.join("health");
        let health = health.map_err(|_| EngineError::Url(deployment.url.clone()))?;
        let client = Client::builder().timeout(limit).http2_prior_knowledge().no_proxy().build();
        let lost = |error| unreachable(&health, &error);
        // A worker that accepts signed requests only rejects this one, but it responds.
        client.map_err(lost)?.get(health.clone()).send().await.map(drop).map_err(lost)
    }
}
