//! Keys and their results.

/// Code of a pressed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A character: with Ctrl or Alt the lower-case letter, otherwise the character to insert.
    Char(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    Esc,
    /// A bracketed paste.
    Paste(String),
}

/// A key with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) code: Code,
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
    pub(crate) shift: bool,
}

impl Key {
    /// The key without modifiers.
    pub(crate) fn of(code: Code) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }
}

#[cfg(test)]
impl Key {
    /// The key with Ctrl.
    pub(crate) fn ctrl(code: Code) -> Self {
        Self { ctrl: true, ..Self::of(code) }
    }

    /// The key with Alt.
    pub(crate) fn alt(code: Code) -> Self {
        Self { alt: true, ..Self::of(code) }
    }
}

/// Result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Not used by the editor, so the caller may handle it. Esc, Ctrl-C, Ctrl-D with an empty text, page keys and Ctrl-L
    /// are always left to the caller unless a search or a list of candidates is open.
    None,
    /// The view has changed.
    Changed,
    /// The text was sent: the editor is empty, and the history contains the text.
    Submit(String),
    /// Text was inserted, but the end of it exceeded the limit.
    Cut {
        /// Number of bytes that were not inserted.
        bytes: usize,
    },
}
