//! Rendering of records: as trace pages, or as text.

mod page;
mod text;
mod timeline;
mod write;

pub use page::{TRACE_SCRIPT, TRACE_STYLE, render_comparison_html, render_html, render_runs_html};
pub use text::render_text;
