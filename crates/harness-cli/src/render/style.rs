//! The few styles; anstream leaves them out where no terminal shows them.

use anstyle::{AnsiColor, Style};

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
