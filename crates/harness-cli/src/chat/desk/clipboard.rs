//! An image on the clipboard of the desktop.

use harness::core::{Cancel, Millis};
use harness::host::{ProcessOptions, Shell as _};

use super::detour::programs;
use crate::chat::images;
use crate::private_file::PrivateFile;

/// Writes the image to `$IMAGE` with the first program that has one: of Wayland, X11, macOS.
const LINE: &str = "try() { \"$@\" 2>/dev/null | head -c \"$MOST\" >\"$IMAGE\"; [ -s \"$IMAGE\" ]; }
{ [ -n \"$WAYLAND_DISPLAY\" ] && try wl-paste --type image/png; } ||
  try xclip -selection clipboard -target image/png -out || try pngpaste -";

/// Time limit: a program may wait for a desktop that does not answer.
const LIMIT: Millis = Millis(5_000);

/// Writes the image on the clipboard to a private file. `number` distinguishes the files of this process.
pub(super) async fn image(number: i64) -> Result<PrivateFile, String> {
    let failed = |fault: std::io::Error| format!("cannot read the clipboard: {fault}");
    let file = PrivateFile::create(&format!("image-{number}.png"), "").map_err(failed)?;
    let programs = programs().env("IMAGE", file.path()).env("MOST", (images::LONGEST + 1).to_string());
    let ran = programs.exec(LINE, &ProcessOptions::new().timeout(LIMIT), &Cancel::new()).await;
    if ran.is_ok_and(|output| output.exit_code == Some(0)) {
        return Ok(file);
    }
    Err("no image on the clipboard, or neither wl-paste, xclip nor pngpaste is installed; @FILE attaches a file".to_owned())
}
