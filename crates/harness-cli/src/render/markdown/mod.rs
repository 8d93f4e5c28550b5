//! Markdown for a terminal, shown while it streams.

mod code;
mod definitions;
mod looks;
mod render;
mod scan;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use super::line::{Look, Text, width};

pub(crate) use super::line::{Line, Styling};
pub(crate) use stream::MarkdownStream;
