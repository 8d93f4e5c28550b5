//! An execution adapter as a model of one step.

mod answer;
mod gathered;
mod model;
mod note;
mod request;

pub use model::BackendModel;
pub use note::{BackendNote, BackendTool};
