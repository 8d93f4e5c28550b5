//! Input typed on the terminal.

/// Discards typed input that was not read yet.
#[cfg(unix)]
pub(crate) fn discard_input() {
    // What is no terminal has nothing that was typed.
    let _ = rustix::termios::tcflush(rustix::stdio::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
pub(crate) fn discard_input() {}

/// Columns and rows of the terminal at standard error; 80 and 24 if unknown.
#[cfg(unix)]
pub(crate) fn question_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(rustix::stdio::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        Ok(_) | Err(_) => (80, 24),
    }
}

#[cfg(not(unix))]
pub(crate) fn question_size() -> (usize, usize) {
    crate::render::size()
}
