//! Layers that come with the crate, and the stores they write to.

pub mod embed;
pub mod notes;
