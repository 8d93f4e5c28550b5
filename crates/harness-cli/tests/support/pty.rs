//! The program on a terminal that shows no styles, so that every control character is somebody else's.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Output, through, within};

/// A new pseudo-terminal: our side and the program's.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let not_of_ours = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let mut theirs = File::options();
    let theirs = theirs.read(true).write(true).custom_flags(not_of_ours).open(name.to_str().unwrap());
    (File::from(ours), theirs.unwrap())
}

/// The command at a terminal of its own, which is its standard input, and the other side of it.
pub(crate) fn at_own_terminal(command: &Command) -> (Command, File) {
    let (ours, theirs) = terminal();
    let mut command = through(&["env", "--default-signal", "setsid", "--ctty"], command);
    command.stdin(theirs).env("TERM", "xterm");
    (command, ours)
}

/// Runs a command to its end with both of its outputs on one terminal; what it showed is `stdout`.
pub(crate) fn on_terminal(mut command: Command) -> Output {
    let (ours, theirs) = terminal();
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut child = command.spawn().unwrap();
    // The program's side must be closed here.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    drop(command);
    within("the end of the program", move || {
        let (mut ours, mut shown, mut buffer) = (ours, Vec::new(), [0; 4096]);
        // Reading fails when the program's side is closed.
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..read]);
        }
        let code = child.wait().unwrap().code();
        // The terminal's own line ends.
        let stdout = String::from_utf8_lossy(&shown).replace("\r\n", "\n");
        Output { code, stdout, stderr: String::new() }
    })
}

/// The characters of a text that steer a terminal, change the order of others or cannot be seen.
pub(crate) fn raw_controls(text: &str) -> String {
    let raw = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().filter(raw).collect()
}
