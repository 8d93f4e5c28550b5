//! The compactor: single requests, its policies, and the laws that every view obeys.

mod laws;
mod policies;
mod requests;
