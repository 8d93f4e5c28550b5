//! Long texts in the user's pager.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::host::process::foreground;

use crate::env;
use crate::error::CliError;
use crate::private_file::PrivateFile;
use crate::render::size;
use crate::run::block_on;
use crate::signal::Signals;
use crate::terminal::Stream;

/// Whether `--no-pager` was given.
static OFF: AtomicBool = AtomicBool::new(false);

/// Prints without a pager from now on.
pub(crate) fn disable() {
    OFF.store(true, Ordering::Relaxed);
}

/// How the pager shows a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In place of output: what was read stays on the terminal.
    Output,
    /// On a separate screen, from its end.
    Screen,
}

/// Whether a text that is printed is shown in a pager: it has more lines than the terminal.
pub(crate) fn is_wanted(text: &str) -> bool {
    !OFF.load(Ordering::Relaxed)
        && Stream::Out.is_terminal()
        && !env::is_dumb_terminal()
        && text.lines().count() >= size().1
}

/// Shows a text that is printed, with its styles, in a pager. Returns whether the pager could be started.
pub(crate) fn print(text: &str) -> Result<bool, CliError> {
    block_on(async {
        let failed = |source| CliError::Io { action: "use the pager", source };
        let mut signals = Signals::listen().map_err(failed)?;
        let shown = show(text, Place::Output).await;
        // Ctrl-C was for the pager.
        signals.discard_interrupts();
        Ok(shown.is_ok())
    })
}

/// Shows a text, with its styles, until the user leaves the pager.
pub(crate) async fn show(text: &str, place: Place) -> Result<(), String> {
    let pager = env::pager();
    let failed = |fault: io::Error| format!("cannot use the pager `{pager}`: {fault}");
    let file = PrivateFile::create("pager.txt", text).map_err(failed)?;
    let line = line(&pager, place);
    let args = ["-c".into(), line.into(), "pager".into(), file.path().into()];
    let status = foreground(OsStr::new("/bin/sh"), &args).await.map_err(failed)?;
    match status.code() {
        // The shell's codes for a program that does not exist or cannot be run.
        Some(126 | 127) => Err(format!("pager `{pager}` not found; install less, or set PAGER")),
        // Leaving the pager with Ctrl-C is no failure.
        Some(_) | None => Ok(()),
    }
}

/// The line of the shell that starts the pager. `less` keeps colors (`R`). In place of output, it ends at once if the
/// text fits (`F`) and does not clear the terminal (`X`), unless the user has set `LESS`.
fn line(pager: &str, place: Place) -> String {
    let program = pager.split_whitespace().next().unwrap_or_default();
    let is_less = Path::new(program).file_name() == Some(OsStr::new("less"));
    let options = match place {
        Place::Screen if is_less => " -R -+F -+X +G",
        Place::Output | Place::Screen => "",
    };
    format!("LESS=\"${{LESS-FRX}}\" LV=\"${{LV--c}}\"; export LESS LV; exec {pager}{options} < \"$1\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_keeps_colors_and_the_options_of_the_user() {
        let check = |pager: &str, place, expected: &str| {
            let line = line(pager, place);
            let (_, started) = line.split_once("exec ").unwrap();
            assert_eq!(started, expected);
            assert!(line.starts_with("LESS=\"${LESS-FRX}\""), "{line}");
        };
        check("less", Place::Output, "less < \"$1\"");
        check("less", Place::Screen, "less -R -+F -+X +G < \"$1\"");
        check("/usr/bin/less -i", Place::Screen, "/usr/bin/less -i -R -+F -+X +G < \"$1\"");
        check("more", Place::Screen, "more < \"$1\"");
    }
}
