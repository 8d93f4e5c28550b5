//! What can be used but is probably not meant.
//!
//! [`source`] looks at a descriptor as it is written, [`graph`] at what loading made of it. Both
//! read leniently: what has the wrong shape is reported by the validation and passed over here.

mod agents;
mod context;
mod finder;
mod parts;
mod placeholders;
mod settings;
mod values;

pub(super) use finder::Found;

use finder::Finder;

use crate::descriptor::Descriptor;
use crate::document::{Document, NodeId};

/// Lints of the descriptor as written.
pub(super) fn source(document: &Document, root: NodeId, found: &mut Found) {
    let mut finder = Finder { document, root, found };
    values::check(&mut finder);
    settings::check(&mut finder);
    parts::check(&mut finder);
}

/// Lints of the materialized descriptor: its graph, texts and context.
///
/// `faulty` tells whether the descriptor has a fault with one of the codes; what such a fault makes
/// look unused is not warned of.
pub(super) fn graph(descriptor: &Descriptor, faulty: &dyn Fn(&[&str]) -> bool, found: &mut Found) {
    let mut finder = Finder { document: descriptor.document(), root: descriptor.root_id(), found };
    agents::check(&mut finder, faulty);
    context::check(&mut finder, faulty);
    placeholders::check(&mut finder);
}
