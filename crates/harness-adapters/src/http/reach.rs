//! Whether a server answers at all.

use std::time::Duration;

use harness_core::port::{ModelFault, ModelFaultCode};
use harness_core::{Millis, ModelName};
use tokio::time::timeout;

use super::setup::{Auth, Protocol, Setup};

static MODELS: Protocol = Protocol {
    endpoint: "an endpoint of models",
    reply: "list of models",
    path: "/models",
    reserved: &[],
    auth: Auth::Bearer,
    headers: &[],
    think: |_, _| {},
};

/// Response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reached {
    /// Host, port and path that were asked.
    pub address: String,
    /// The HTTP status.
    pub status: u16,
}

/// Requests the list of models at a base URL (`https://host/api/v1`), without an API key. Any
/// response, even a refusal, shows that the server is reachable.
///
/// # Errors
/// The URL is invalid, the server is unreachable, or no response arrived within `limit`.
pub async fn reach(base_url: &str, limit: Duration) -> Result<Reached, ModelFault> {
    let setup = Setup::compatible(&MODELS, base_url.to_owned(), ModelName::from("none"));
    let service = setup.build();
    let service = service.map_err(|e| ModelFault::new(ModelFaultCode::Configuration, e.to_string()))?;
    let asked = service.client.get(service.endpoint.url().clone()).send();
    match timeout(limit, asked).await {
        Ok(Ok(reply)) => Ok(Reached { address: service.endpoint.shown(), status: reply.status().as_u16() }),
        Ok(Err(error)) => Err(service.faults.transport(&error)),
        Err(_) => Err(service.faults.timeout("did not answer", Millis::from(limit))),
    }
}
