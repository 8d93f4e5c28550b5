//! Test kit for stores and their users: the contracts of stores, and a disk that fails on request.

mod artifacts;
mod checkpoints;
mod contract;
mod faults;
mod shortening;
mod storage;

pub use artifacts::artifact_contract;
pub use checkpoints::checkpoint_contract;
pub use contract::{durable_session_contract, session_contract};
pub use faults::{Fault, Faults};
pub use storage::storage_contract;

pub use crate::disk::Change;
