//! A person at a terminal with the program.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{PATIENCE, terminal, within};

/// What the terminal shows.
struct Screen {
    shown: vt100::Parser,
    /// Whether the program has let go of the terminal.
    closed: bool,
}

/// A person at a terminal.
pub(crate) struct Person {
    terminal: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    program: Child,
}

impl Person {
    /// Starts the program at a terminal of so many rows and columns.
    pub(crate) fn sit_down(mut command: Command, rows: u16, columns: u16) -> Self {
        let (ours, theirs) = terminal();
        tcsetwinsize(&ours, size(rows, columns)).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let program = command.env("TERM", "xterm").spawn().unwrap();
        let screen = Screen { shown: vt100::Parser::new(rows, columns, 0), closed: false };
        let screen = Arc::new((Mutex::new(screen), Condvar::new()));
        let (terminal, shown) = (ours.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || show(ours, &shown));
        Self { terminal, screen, program }
    }

    /// The person's side of the terminal.
    pub(crate) fn terminal(&self) -> &File {
        &self.terminal
    }

    /// Types.
    pub(crate) fn types(&self, keys: &str) -> &Self {
        (&self.terminal).write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Types a message and sends it.
    pub(crate) fn says(&self, text: &str) -> &Self {
        self.types(text).types("\r")
    }

    /// Looks at what the terminal shows.
    pub(crate) fn screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.screen.0.lock().shown.screen())
    }

    /// Waits until a text is shown.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> &Self {
        self.wait(&format!("`{text}` to be shown"), |shown| shown.contains(text))
    }

    /// Waits until a text is not shown any more.
    #[track_caller]
    pub(crate) fn loses(&self, text: &str) -> &Self {
        self.wait(&format!("`{text}` to be gone"), |shown| !shown.contains(text))
    }

    #[track_caller]
    fn wait(&self, what: &str, so: impl Fn(&str) -> bool) -> &Self {
        let (screen, changed) = &*self.screen;
        let not_yet = |screen: &mut Screen| !screen.closed && !so(&screen.shown.screen().contents());
        let mut screen = screen.lock();
        changed.wait_while_for(&mut screen, not_yet, PATIENCE);
        let shown = screen.shown.screen().contents();
        drop(screen);
        assert!(so(&shown), "waited for {what}; the screen shows:\n{}", shown.trim_end());
        self
    }

    /// Gives the terminal another size, and tells the program.
    pub(crate) fn resizes(&self, rows: u16, columns: u16) -> &Self {
        self.screen.0.lock().shown.screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.terminal, size(rows, columns)).unwrap();
        self.sends(Signal::WINCH)
    }

    /// Sends the program a signal.
    pub(crate) fn sends(&self, signal: Signal) -> &Self {
        kill_process(Pid::from_child(&self.program), signal).unwrap();
        self
    }

    /// Waits for the end of the program; its exit code, and the last that was shown.
    #[track_caller]
    pub(crate) fn leaves(mut self) -> (Option<i32>, String) {
        let (screen, changed) = &*self.screen;
        let open = |screen: &mut Screen| !screen.closed;
        let mut screen = screen.lock();
        changed.wait_while_for(&mut screen, open, PATIENCE);
        let shown = screen.shown.screen().contents();
        assert!(screen.closed, "the program did not end; the screen shows:\n{}", shown.trim_end());
        drop(screen);
        let code = within("the end", move || self.program.wait().unwrap().code());
        (code, shown)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Shows what the program writes, until it lets go of the terminal.
fn show(mut terminal: File, (screen, changed): &(Mutex<Screen>, Condvar)) {
    let mut buffer = [0; 1024];
    // Reading fails when the program's side is closed.
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        screen.lock().shown.process(&buffer[..read]);
        changed.notify_all();
    }
    screen.lock().closed = true;
    changed.notify_all();
}
