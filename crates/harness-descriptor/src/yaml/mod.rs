//! From YAML text to values, by the rules of reference section 5.
//!
//! [`reader`] is the only user of the YAML library, which appears in no signature outside this
//! directory.

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
