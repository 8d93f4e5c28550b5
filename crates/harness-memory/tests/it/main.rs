//! Tests of harness-memory; one module per topic.

mod groups;
