//! What Tab completes.

/// What stands before the cursor when Tab is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// The name of a command, with its slash: the first word of the text.
    Command(&'a str),
    /// A word behind a command.
    Argument {
        /// The command, with its slash.
        command: &'a str,
        /// The word up to the cursor.
        word: &'a str,
    },
    /// Any other word, and the first one when no command is known that begins so.
    Path(&'a str),
}

/// Knows what words can become.
pub(crate) trait Complete: Send {
    /// Whole words that begin with this one, in the order in which they are offered. A candidate that ends with
    /// a slash is gone on with, behind every other one a space is set. What does not begin with the word is left out.
    fn candidates(&self, word: Word<'_>) -> Vec<String>;
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
