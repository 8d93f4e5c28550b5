//! What a person does at the keyboard, and what comes of it.

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A character; with Ctrl or Alt the lower-case letter, without them as it is to be inserted.
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
    /// A bracketed paste, whole.
    Paste(String),
}

/// A key with what was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) code: Code,
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
    pub(crate) shift: bool,
}

impl Key {
    /// The key alone.
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

/// What came of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Nothing: the key has no meaning here, so the caller may give it one. Esc, Ctrl-C, Ctrl-D with an empty
    /// text, page keys and Ctrl-L are always the caller's, unless a search or a list of candidates is open.
    None,
    /// Something looks different.
    Changed,
    /// The text was sent: the editor is empty, and the history has it.
    Submit(String),
    /// Something was inserted, but so many bytes of it were left out because the text would be too long.
    Cut {
        /// The bytes that were left out.
        bytes: usize,
    },
}
