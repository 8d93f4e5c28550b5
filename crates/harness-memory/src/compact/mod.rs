//! Compaction: groups, strategies, summaries, the compactor.
//!
//! | module | what it has |
//! |---|---|
//! | [`group`] | what is only ever taken together: atomic groups of messages |

pub mod group;
