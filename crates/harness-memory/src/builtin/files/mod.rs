//! File references: `#path/to/file.rs` in a message brings the file into the view.

mod layer;
mod reference;
mod render;
mod tracked;

pub use layer::FileReferences;
