//! Styles, which are omitted on plain output.

use anstyle::{AnsiColor, Style};

use crate::terminal::Paint;

pub(crate) const DIM: Paint = Paint::of(Style::new().dimmed());
pub(crate) const BOLD: Paint = Paint::of(Style::new().bold());
pub(crate) const GOOD: Paint = Paint::of(AnsiColor::Green.on_default());
pub(crate) const BAD: Paint = Paint::of(AnsiColor::Red.on_default());
pub(crate) const NOTE: Paint = Paint::of(AnsiColor::Yellow.on_default());
