//! Images in the terminal, in the protocols of kitty and iTerm2.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::core::message::ImageBlock;

use super::line::Line;
use crate::env;

/// Maximum size in bytes of the Base64 text of a shown image.
const LONGEST: usize = 2 << 20;

/// Maximum size of a shown image in columns and rows.
const MOST_COLUMNS: usize = 60;
const MOST_ROWS: usize = 20;

/// Assumed width of a column in pixels. Rows are twice as high.
const COLUMN: u32 = 8;

/// Maximum length of a part of an image in kitty's protocol.
const PART: usize = 4_096;

/// Removes the images on the screen, in kitty's protocol.
pub(crate) const REMOVE: &str = "\x1b_Ga=d,d=a,q=2\x1b\\";

/// A protocol of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Kitty,
    Iterm,
}

/// The protocol of the terminal, by its environment. Terminal multiplexers pass on none.
pub(crate) fn protocol() -> Option<Protocol> {
    let program = env::text(env::TERM_PROGRAM).unwrap_or_default();
    let is_inside = env::text(env::TMUX).is_some() || env::text(env::STY).is_some();
    match program.as_str() {
        _ if is_inside => None,
        "iTerm.app" | "WezTerm" => Some(Protocol::Iterm),
        "ghostty" => Some(Protocol::Kitty),
        _ if env::text(env::KITTY_WINDOW_ID).is_some() => Some(Protocol::Kitty),
        _ => None,
    }
}

/// An image that a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    protocol: Protocol,
    /// Base64.
    data: Arc<str>,
    /// Width and height in pixels, if known.
    pixels: Option<(u32, u32)>,
}

impl Picture {
    /// The image of a block; `None` if the terminal cannot show it.
    pub(crate) fn of(image: &ImageBlock, protocol: Protocol) -> Option<Self> {
        let (data, kind) = (image.data.as_deref()?, image.mime_type.as_deref()?);
        let is_shown = kind == "image/png" || (protocol == Protocol::Iterm && kind.starts_with("image/"));
        // No other character can end the sequence.
        let is_safe = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        if !is_shown || !is_safe || data.is_empty() || data.len() > LONGEST {
            return None;
        }
        let pixels = if kind == "image/png" { png_size(data) } else { None };
        Some(Self { protocol, data: data.into(), pixels })
    }

    /// Lines for the image: the last one draws it over all of them.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let (columns, rows) = self.cells(width);
        let mut lines = vec![Line::new(); rows - 1];
        lines.push(Line::drawing(self.sequence(columns, rows).into()));
        lines
    }

    /// Size in columns and rows, at least one of each.
    fn cells(&self, width: usize) -> (usize, usize) {
        let most = width.clamp(1, MOST_COLUMNS);
        let Some((wide, high)) = self.pixels else { return (most.min(40), 12) };
        let whole = |pixels: u32, cell: u32| usize::try_from(pixels.div_ceil(cell)).unwrap_or(usize::MAX);
        let (columns, rows) = (whole(wide, COLUMN).max(1), whole(high, 2 * COLUMN).max(1));
        let fitting = |columns: usize| (rows.saturating_mul(columns) / whole(wide, COLUMN).max(1)).max(1);
        let columns = columns.min(most);
        if fitting(columns) <= MOST_ROWS {
            return (columns, fitting(columns));
        }
        ((columns * MOST_ROWS / fitting(columns)).max(1), MOST_ROWS)
    }

    /// Draws the image above the cursor, which stays where it is.
    fn sequence(&self, columns: usize, rows: usize) -> String {
        let mut text = String::from("\x1b7");
        if rows > 1 {
            let _ = write!(text, "\x1b[{}A", rows - 1);
        }
        match self.protocol {
            Protocol::Iterm => {
                let _ = write!(
                    text,
                    "\x1b]1337;File=inline=1;width={columns};height={rows};preserveAspectRatio=1:{}\x07",
                    self.data
                );
            }
            Protocol::Kitty => {
                let mut head = format!("a=T,f=100,q=2,C=1,c={columns},r={rows},");
                let mut rest = &*self.data;
                while !rest.is_empty() {
                    let (part, after) = rest.split_at(rest.len().min(PART));
                    let _ = write!(text, "\x1b_G{head}m={};{part}\x1b\\", u8::from(!after.is_empty()));
                    (rest, head) = (after, String::new());
                }
            }
        }
        text + "\x1b8"
    }
}

/// Width and height of a PNG image.
fn png_size(data: &str) -> Option<(u32, u32)> {
    let head = STANDARD.decode(data.get(..32)?).ok()?;
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    head.starts_with(b"\x89PNG").then_some((number(16)?, number(20)?))
}

#[cfg(test)]
mod tests {
    use harness::core::message::Block;

    use super::*;

    /// A block of a PNG image of that size.
    fn png(wide: u32, high: u32) -> Arc<ImageBlock> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(wide.to_be_bytes());
        bytes.extend(high.to_be_bytes());
        bytes.extend([0; 9]);
        block(&STANDARD.encode(bytes), "image/png")
    }

    fn block(data: &str, kind: &str) -> Arc<ImageBlock> {
        let Block::Image(image) = Block::image(data, kind) else { panic!("an image") };
        image
    }

    #[track_caller]
    fn check(wide: u32, high: u32, width: usize, expected: (usize, usize)) {
        let picture = Picture::of(&png(wide, high), Protocol::Kitty).unwrap();
        assert_eq!(picture.cells(width), expected);
    }

    #[test]
    fn image_keeps_its_proportions_within_the_terminal() {
        check(80, 32, 100, (10, 2));
        check(1_600, 800, 100, (60, 15));
        check(1_600, 800, 20, (20, 5));
        check(100, 4_000, 100, (1, 20));
        check(0, 0, 100, (1, 1));
    }

    #[test]
    fn image_is_drawn_above_the_cursor() {
        let image = png(16, 32);
        let lines = Picture::of(&image, Protocol::Kitty).unwrap().lines(80);
        let data = image.data.as_deref().unwrap();
        let drawn = format!("\x1b7\x1b[1A\x1b_Ga=T,f=100,q=2,C=1,c=2,r=2,m=0;{data}\x1b\\\x1b8");
        assert_eq!(lines.iter().map(Line::to_ansi).collect::<Vec<_>>(), [String::new(), drawn]);
        let lines = Picture::of(&image, Protocol::Iterm).unwrap().lines(80);
        let drawn = "\x1b7\x1b[1A\x1b]1337;File=inline=1;width=2;height=2;preserveAspectRatio=1:";
        assert_eq!(lines[1].to_ansi(), format!("{drawn}{data}\x07\x1b8"));
    }

    #[test]
    fn long_image_is_sent_in_parts() {
        let image = block(&"A".repeat(PART + 4), "image/png");
        let lines = Picture::of(&image, Protocol::Kitty).unwrap().lines(80);
        let drawn = lines.last().unwrap().to_ansi();
        assert!(drawn.ends_with("AAAA\x1b\\\x1b_Gm=0;AAAA\x1b\\\x1b8"), "{drawn}");
    }

    #[test]
    fn what_a_terminal_cannot_show_is_no_picture() {
        let of = |data: &str, kind: &str, protocol| Picture::of(&block(data, kind), protocol).is_some();
        assert!(of("AAAA", "image/jpeg", Protocol::Iterm));
        assert!(!of("AAAA", "image/jpeg", Protocol::Kitty));
        assert!(!of("AA\x07AA", "image/png", Protocol::Iterm));
        assert!(!of("", "image/png", Protocol::Kitty));
        assert!(!of(&"A".repeat(LONGEST + 1), "image/png", Protocol::Kitty));
    }
}
