//! `harness chat`: a conversation at a terminal.
#![expect(dead_code, unused_imports, reason = "the screen of the chat is built on these parts")]

mod composer;
mod line;
mod markdown;
