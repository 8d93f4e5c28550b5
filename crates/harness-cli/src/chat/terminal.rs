//! The terminal: raw mode that is always restored, keys and size.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags, poll, read,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc;

use super::composer::{Code, Key};
use crate::terminal::drawing;

/// Maximum number of buffered keys; the reader waits beyond it.
const WAITING: usize = 1_024;

/// How long the reader waits for a key before it looks whether it is to pause.
const GLANCE: Duration = Duration::from_millis(100);

/// Input from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Key(Key),
    /// New size in columns and rows.
    Size(usize, usize),
    /// End of input.
    Closed,
}

/// A terminal in raw mode. It is restored when this is dropped, and on a panic.
#[derive(Debug)]
pub(super) struct Terminal(());

impl Terminal {
    pub(super) fn take() -> io::Result<Self> {
        take_back()?;
        let this = Self(());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
        Ok(this)
    }
}

/// Keys and sizes, read by a thread that ends with the program.
#[derive(Debug)]
pub(super) struct Keys {
    inputs: mpsc::Receiver<Input>,
    gate: Arc<Gate>,
}

/// Lets the reading thread pause, so that another program receives the keys.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<Reading>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    On,
    /// The thread is to pause.
    Pausing,
    Paused,
}

impl Keys {
    /// Starts to read.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, inputs) = mpsc::channel(WAITING);
        let gate = Arc::new(Gate::default());
        let of_thread = Arc::clone(&gate);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                of_thread.pass();
                let input =
                    match poll(GLANCE).and_then(|ready| if ready { read().map(Some) } else { Ok(None) }) {
                        Ok(event) => event.and_then(of),
                        Err(_) => Some(Input::Closed),
                    };
                let closed = input == Some(Input::Closed);
                if input.is_some_and(|input| sender.blocking_send(input).is_err()) || closed {
                    return;
                }
            }
        })?;
        Ok(Self { inputs, gate })
    }

    /// Receives the next input.
    pub(super) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::Closed)
    }

    /// Stops reading. Returns when the thread has paused, or when it does not get that far.
    pub(super) fn pause(&self) {
        let mut state = self.gate.state.lock();
        *state = Reading::Pausing;
        let waits = |state: &mut Reading| *state == Reading::Pausing;
        self.gate.changed.wait_while_for(&mut state, waits, GLANCE * 10);
    }

    /// Reads again.
    pub(super) fn resume(&self) {
        *self.gate.state.lock() = Reading::On;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    /// Waits while reading is paused.
    fn pass(&self) {
        let mut state = self.state.lock();
        while *state != Reading::On {
            *state = Reading::Paused;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal; a failure is ignored because nothing else could be done.
pub(super) fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(drawing(), PopKeyboardEnhancementFlags, DisableBracketedPaste, cursor::Show);
    let _ = drawing().flush();
}

/// Takes the terminal again after [`restore`].
pub(super) fn take_back() -> io::Result<()> {
    enable_raw_mode()?;
    // Terminals that know it tell Shift-Enter from Enter; others ignore it.
    let keys = PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES);
    execute!(drawing(), EnableBracketedPaste, keys)
}

fn of(event: Event) -> Option<Input> {
    match event {
        Event::Key(event) if event.kind != KeyEventKind::Release => key(event).map(Input::Key),
        Event::Paste(text) => Some(Input::Key(Key::of(Code::Paste(text)))),
        Event::Resize(columns, rows) => Some(Input::Size(columns.max(1).into(), rows.max(1).into())),
        Event::Key(_) | Event::Mouse(_) | Event::FocusGained | Event::FocusLost => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other keys have no use here")]
fn key(event: KeyEvent) -> Option<Key> {
    let held = |modifier| event.modifiers.contains(modifier);
    let (ctrl, alt, shift) =
        (held(KeyModifiers::CONTROL), held(KeyModifiers::ALT), held(KeyModifiers::SHIFT));
    let code = match event.code {
        KeyCode::Char(c) if ctrl || alt => Code::Char(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::Esc => Code::Esc,
        _ => return None,
    };
    Some(Key { code, ctrl, alt, shift })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_with_what_was_held() {
        let pressed = |code, held| of(Event::Key(KeyEvent::new(code, held)));
        let key = |key| Some(Input::Key(key));
        assert_eq!(
            pressed(KeyCode::Char('A'), KeyModifiers::SHIFT),
            key(Key { shift: true, ..Key::of(Code::Char('A')) })
        );
        assert_eq!(pressed(KeyCode::Char('C'), KeyModifiers::CONTROL), key(Key::ctrl(Code::Char('c'))));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), key(Key::alt(Code::Enter)));
        assert_eq!(pressed(KeyCode::F(1), KeyModifiers::NONE), None);
        assert_eq!(of(Event::Paste("a\nb".to_owned())), key(Key::of(Code::Paste("a\nb".to_owned()))));
        assert_eq!(of(Event::Resize(0, 5)), Some(Input::Size(1, 5)));
    }
}
