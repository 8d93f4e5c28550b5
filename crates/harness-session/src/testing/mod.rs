//! For tests of stores and of what uses them: the contract that every store keeps, and a disk that breaks
//! when told to.

mod contract;
mod faults;
mod shortening;

pub use contract::{durable_session_contract, session_contract};
pub use faults::{Fault, Faults};

pub use crate::jsonl::Change;
