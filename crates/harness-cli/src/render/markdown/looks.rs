//! Appearance of each kind of text, with and without styles.

use anstyle::{AnsiColor, Style};

use super::{Look, Styling};
use crate::render::{BOLD, DIM};

/// Appearances of one styling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks(pub(super) Styling);

impl Looks {
    pub(super) fn has_colour(self) -> bool {
        self.0 == Styling::Colour
    }

    /// The style, if styles are shown.
    pub(super) fn of(self, style: Style) -> Look {
        Look::of(self.style(style))
    }

    fn style(self, style: Style) -> Style {
        if self.has_colour() { style } else { Style::new() }
    }

    /// Secondary text, such as an address or the bar of a quote.
    pub(super) fn dim(self) -> Look {
        self.of(DIM.style())
    }

    pub(super) fn bold(self) -> Look {
        self.of(BOLD.style())
    }

    /// Text of a heading.
    pub(super) fn heading(self, level: usize) -> Look {
        self.of(if level == 1 { BOLD.style().underline() } else { BOLD.style() })
    }

    /// Code, over the style of the surrounding text.
    pub(super) fn code(self, around: &Look) -> Look {
        let style = self.style(around.style.fg_color(Some(AnsiColor::Cyan.into())));
        Look { style, link: around.link.clone() }
    }

    /// Selects the styled or the plain form.
    pub(super) fn either<'a>(self, styled: &'a str, plain: &'a str) -> &'a str {
        if self.has_colour() { styled } else { plain }
    }
}
