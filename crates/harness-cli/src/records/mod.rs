//! The commands about run records.

mod again;
mod inspect;
pub(crate) mod recording;
mod regress;
mod replay;

pub(crate) use inspect::inspect;
pub(crate) use regress::regress;
pub(crate) use replay::replay;
