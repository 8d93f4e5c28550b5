//! Memory layers and their pipeline.
