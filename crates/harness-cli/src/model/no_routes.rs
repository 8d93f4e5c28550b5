//! Routes of a build without live models: there are none.

use std::sync::Arc;

use harness::core::port::{Clock, DynModel};
use harness::tools::Registry;

use super::choose::Quotas;
use super::demo::Demo;
use super::keys::Keys;
use crate::error::CliError;
use crate::left_out::left_out;

/// See the routes of a build with the feature `http`.
pub(super) struct Routes;

#[expect(clippy::unused_self, reason = "the interface is that of a build with routes")]
impl Routes {
    pub(super) fn new(_: Option<&str>, _: &Keys, _: Option<&Registry>, _: &Arc<dyn Clock>) -> Self {
        Self
    }

    pub(super) fn share(self, _: Option<Quotas>) -> Self {
        self
    }

    pub(super) fn window<'n>(&self, _: impl IntoIterator<Item = &'n str>) -> Option<u64> {
        None
    }

    pub(super) fn problem(&self, _: &str) -> Option<CliError> {
        None
    }

    pub(super) fn only(&self, model: &str) -> Result<Arc<dyn DynModel>, CliError> {
        if let Some(demo) = Demo::named(model) {
            return Ok(Arc::new(demo));
        }
        Err(left_out(&format!("the live model `{model}`"), "http"))
    }

    pub(super) fn all(&self, _: &[String]) -> Result<Arc<dyn DynModel>, CliError> {
        Err(CliError::NoKey { model: String::new(), names: Vec::new() })
    }
}
