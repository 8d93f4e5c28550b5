//! Responses: runs of threads that can be continued.

mod items;
mod output;
mod request;
pub(super) mod routes;
mod store;
mod stream;
mod target;
mod view;

pub(crate) use store::ResponseStore;
pub(super) use view::{ResponseView, now};
