//! Layers that come with the crate.
