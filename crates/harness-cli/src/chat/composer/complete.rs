//! Completion with Tab.

/// Text before the cursor when Tab is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// Name of a command with its slash: the first word of the text.
    Command(&'a str),
    /// Argument of a command.
    Argument {
        /// The command with its slash.
        command: &'a str,
        /// The word up to the cursor.
        word: &'a str,
    },
    /// Any other word, and the first word if no command starts with it.
    Path(&'a str),
}

/// A choice of a menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The whole word.
    pub(crate) text: String,
    /// Description.
    pub(crate) note: String,
    /// Whether Enter also sends it: a command that can be used without arguments.
    pub(crate) is_sent: bool,
}

/// Source of completions.
pub(crate) trait Complete: Send {
    /// Returns whole words that start with this one, in display order. No space is added after a candidate that ends
    /// with a slash. Candidates that do not start with the word are ignored.
    fn candidates(&self, word: Word<'_>) -> Vec<String>;

    /// Returns the choices that are listed while this word is typed, in display order. They replace the word and need not
    /// start with it. Default none.
    fn menu(&self, _word: Word<'_>) -> Vec<Item> {
        Vec::new()
    }
}

/// Completes nothing.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoCandidates;

#[cfg(test)]
impl Complete for NoCandidates {
    fn candidates(&self, _word: Word<'_>) -> Vec<String> {
        Vec::new()
    }
}
