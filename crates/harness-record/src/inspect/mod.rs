//! Rendering of a record: as a trace page, or as text.

mod html;
mod spans;
mod text;
mod timeline;
mod write;

pub use html::render_html;
pub use text::render_text;
