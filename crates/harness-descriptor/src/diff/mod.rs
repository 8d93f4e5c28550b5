//! Changes between two descriptors.
//!
//! [`diff`] compares what is hashed, so two descriptors have an empty [`DescriptorDiff`] exactly
//! if they have the same hash: the order of keys, comments and where a prompt came from do not
//! matter, and everything that the hash covers does.
//!
//! ```
//! use harness_descriptor::diff::diff;
//! use harness_descriptor::load_text;
//!
//! let before = load_text("runtime: { entry_agent: a }\nagents: { a: { model: small } }")?;
//! let after = load_text("runtime: { entry_agent: a }\nagents: { a: { model: large, tools: [find] } }")?;
//! let changes = diff(&before, &after);
//! assert_eq!(changes.to_string(), "~ agent `a`, model: \"small\" → \"large\"\n+ agent `a`, tool `find`\n");
//! assert!(diff(&before, &before).is_empty());
//! # Ok::<(), harness_descriptor::DescriptorError>(())
//! ```

mod change;
mod compare;
mod display;

pub use change::{Aspect, Change, DescriptorDiff, Difference, Subject};
pub use compare::diff;
