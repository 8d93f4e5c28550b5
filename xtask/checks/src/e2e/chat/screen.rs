//! A terminal of tmux with the program in it.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::e2e::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::stopwatch::Stopwatch;

/// How long the screen may take to show something: far more than it ever does.
const PATIENCE: Duration = Duration::from_mins(1);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(30);

/// Terminals so far: a server that is just ending must not be taken for a new one.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// How the line begins that tells the exit code, which the shell in the terminal writes.
const ENDED: &str = "the chat ended with";

/// Installs tmux where it is missing and packages can be installed.
pub(super) fn install() -> Result<()> {
    if process::succeeds(process::command("tmux").arg("-V")) {
        return Ok(());
    }
    let mut apt = process::command("apt-get");
    process::run(apt.args(["install", "--yes", "--no-install-recommends", "tmux"]))
        .map_err(|fault| Fault::because("tmux is not installed, and could not be", fault))
}

/// One terminal, of a tmux server of its own, which ends with it.
#[derive(Debug)]
pub(super) struct Screen {
    socket: String,
}

impl Screen {
    /// A terminal of 100 columns and 30 rows in which the program runs in a folder.
    pub(super) fn open(program: &Program, home: &Path, folder: &Path, arguments: &[&str]) -> Result<Self> {
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let socket = home.join(format!("tmux-{number}")).display().to_string();
        let this = Self { socket };
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let line = format!(
            "{} {}; printf '\\n{ENDED} %s\\n' $?; cat",
            quoted(&program.path().display().to_string()),
            words.join(" ")
        );
        let mut start = this.tmux();
        process::without_keys(&mut start);
        start.env("HOME", home).env("TERM", "xterm-256color").env("NO_PROXY", "127.0.0.1");
        start.env_remove("XDG_STATE_HOME").env_remove("NO_COLOR").current_dir(folder);
        start.args(["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", &line]);
        process::run(&mut start)?;
        Ok(this)
    }

    fn tmux(&self) -> Command {
        let mut command = process::command("tmux");
        command.args(["-u", "-S", &self.socket]);
        command
    }

    /// Types a text as it is.
    pub(super) fn types(&mut self, text: &str) -> Result<()> {
        process::run(self.tmux().args(["send-keys", "-l", text]))
    }

    /// Presses a key, by tmux's name for it.
    pub(super) fn presses(&mut self, key: &str) -> Result<()> {
        process::run(self.tmux().args(["send-keys", key]))
    }

    /// Types a message and sends it.
    pub(super) fn says(&mut self, text: &str) -> Result<()> {
        self.types(text)?;
        self.presses("Enter")
    }

    /// Gives the terminal another size.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) -> Result<()> {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        process::run(self.tmux().args(["resize-window", "-x", &columns, "-y", &rows]))
    }

    /// What the terminal shows, with what has scrolled away.
    fn shown(&self) -> Result<String> {
        process::capture(self.tmux().args(["capture-pane", "-p", "-S", "-"]))
    }

    /// Waits until a text is shown.
    pub(super) fn sees(&self, text: &str) -> Result<()> {
        self.wait(&format!("`{text}` to be shown"), |shown| shown.contains(text))
    }

    /// Waits until a text is not shown any more.
    pub(super) fn loses(&self, text: &str) -> Result<()> {
        self.wait(&format!("`{text}` to be gone"), |shown| !shown.contains(text))
    }

    /// Waits until the program has ended with an exit code.
    pub(super) fn sees_end(&self, code: i32) -> Result<()> {
        self.sees(&format!("{ENDED} {code}"))
    }

    fn wait(&self, what: &str, done: impl Fn(&str) -> bool) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let shown = self.shown()?;
            if done(&shown) {
                return Ok(());
            }
            if watch.elapsed() > PATIENCE {
                return Err(Fault::new(format!(
                    "waited for {what}; the screen shows:\n{}",
                    shown.trim_end()
                )));
            }
            sleep(PAUSE);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A server that is gone already needs no end.
        let _ = process::succeeds(self.tmux().arg("kill-server"));
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
