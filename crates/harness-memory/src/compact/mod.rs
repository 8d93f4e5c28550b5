//! Compaction: groups, strategies, summaries, the compactor.
