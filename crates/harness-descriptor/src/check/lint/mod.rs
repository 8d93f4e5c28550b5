//! Warnings for valid descriptors with probable mistakes.
//!
//! [`source`] checks a descriptor as written, [`graph`] the materialized one. Both are lenient:
//! malformed values are reported by the validation and skipped here.

mod agents;
mod context;
mod finder;
mod parts;
mod placeholders;
mod settings;
mod values;

pub(super) use finder::Found;

use finder::Finder;
use harness_diagnostics::document::{Document, NodeId};

use crate::descriptor::Descriptor;

/// Lints of the descriptor as written.
pub(super) fn source(document: &Document, root: NodeId, found: &mut Found) {
    let mut finder = Finder { document, root, found };
    values::check(&mut finder);
    settings::check(&mut finder);
    parts::check(&mut finder);
}

/// Lints the materialized descriptor: its graph, texts and context.
///
/// `faulty` returns whether the descriptor has an error with one of the codes. Nothing that such an
/// error makes look unused is reported.
pub(super) fn graph(descriptor: &Descriptor, faulty: &dyn Fn(&[&str]) -> bool, found: &mut Found) {
    let mut finder = Finder { document: descriptor.document(), root: descriptor.root_id(), found };
    agents::check(&mut finder, faulty);
    context::check(&mut finder, faulty);
    placeholders::check(&mut finder);
}
