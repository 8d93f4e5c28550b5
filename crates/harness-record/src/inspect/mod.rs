//! Rendering of records: as trace pages, or as text.

mod page;
mod text;
mod timeline;
mod write;

pub use page::{render_comparison_html, render_html, render_runs_html};
pub use text::render_text;
