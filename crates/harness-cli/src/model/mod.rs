//! Which model answers an agent: a provider's, an endpoint's, a recording, or the demo model.
//!
//! [`providers`] is the table of providers, [`keys`] finds API keys, [`routes`] turns the name of a model
//! into an endpoint, and [`choose`] does so for a whole graph. Models of the registry file come first. [`unusable`]
//! finds those that a run could not call.

mod called;
mod choose;
mod demo;
pub(crate) mod keys;
pub(crate) mod providers;
#[cfg_attr(not(feature = "http"), path = "no_routes.rs")]
mod routes;
mod thinking;
mod unusable;

pub(crate) use called::was_called;
pub(crate) use choose::{Pools, Source, announce, choose, demo_notice, find, known, usual};
pub(crate) use thinking::cannot_think;
pub(crate) use unusable::{Unusable, unusable};
