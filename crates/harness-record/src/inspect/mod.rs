//! A record for people: a page, or text.

mod html;
mod page;
mod story;
mod text;
mod write;

pub use html::render_html;
pub use text::render_text;
