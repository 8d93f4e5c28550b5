//! From YAML text to a [`Document`](crate::document::Document).
//!
//! Scalars, merge keys, tags and duplicate keys follow the rules of the descriptor format, which its
//! hash depends on. [`reader`] is the only user of the YAML library, whose types appear in no signature
//! outside this directory.

mod collection;
mod expansion;
mod fault;
mod frame;
mod input;
mod instant_form;
mod layout;
mod limits;
mod mask;
mod quoted;
mod reader;
mod scalar;
mod stop;
mod tags;

pub use fault::{YamlError, YamlFault};
pub use input::decode_lossy;
pub use limits::YamlLimits;
pub use reader::read;
