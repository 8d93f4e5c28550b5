//! Routes of a build without live models: there are none.

use std::sync::Arc;

use harness::core::port::DynModel;

use super::keys::Keys;
use crate::error::CliError;
use crate::left_out::left_out;

/// See the routes of a build with the feature `http`.
pub(super) struct Routes;

#[expect(clippy::unused_self, reason = "the interface is that of a build with routes")]
impl Routes {
    pub(super) fn new(_: Option<&str>, _: &Keys) -> Self {
        Self
    }

    pub(super) fn only(&self, model: &str) -> Result<Arc<dyn DynModel>, CliError> {
        Err(left_out(&format!("the live model `{model}`"), "http"))
    }

    pub(super) fn all(&self, _: &[String]) -> Result<Arc<dyn DynModel>, CliError> {
        Err(CliError::NoKey { model: String::new(), names: Vec::new() })
    }
}
