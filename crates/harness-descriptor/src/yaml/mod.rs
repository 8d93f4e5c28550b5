//! From YAML text to values, by the rules of reference section 5.
//!
//! [`reader`] is the only user of the YAML library; nothing of it appears in a signature
//! outside this folder.

mod collection;
mod expansion;
mod frame;
pub(crate) mod input;
mod instant_form;
mod layout;
mod mask;
mod quoted;
pub(crate) mod reader;
mod scalar;
mod stop;
mod tags;
