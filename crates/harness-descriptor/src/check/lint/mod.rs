//! What can be used but is probably not meant.
//!
//! [`source`] looks at a descriptor as it is written, [`graph`] at what loading made of it. Both
//! read leniently: what has the wrong shape is reported by the validation and passed over here.

mod agents;
mod context;
mod finder;
mod keys;
mod known;
mod parts;
mod placeholders;
mod settings;
mod values;

pub(super) use finder::{Found, graph, source};
