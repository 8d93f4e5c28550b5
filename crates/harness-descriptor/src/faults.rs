//! Where faults go: the first one ends the work, or all of them are collected.

use std::cell::RefCell;

use crate::error::DescriptorError;

/// A descriptor with more faults than this is not worth reading on.
const MAX_FAULTS: usize = 200;

/// The one way in which checks report what they find.
///
/// A check hands each fault to [`report`](Self::report) and goes on behind `?`: with
/// [`Faults::first`] the fault comes back and ends the work, in the order of the source system;
/// with [`Faults::all`] it is kept and the check goes on with the next thing.
#[derive(Debug)]
pub(crate) struct Faults {
    /// `None` stops at the first.
    found: Option<RefCell<Vec<DescriptorError>>>,
}

impl Faults {
    /// Stops at the first fault.
    pub(crate) fn first() -> Self {
        Self { found: None }
    }

    /// Collects faults, up to a bound.
    pub(crate) fn all() -> Self {
        Self { found: Some(RefCell::default()) }
    }

    /// Whether faults are collected.
    pub(crate) fn collects(&self) -> bool {
        self.found.is_some()
    }

    /// How many were collected.
    pub(crate) fn count(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.borrow().len())
    }

    /// Whether no more faults are taken.
    pub(crate) fn is_full(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.borrow().len() >= MAX_FAULTS)
    }

    /// Takes a fault; `Err` says that the work ends with it.
    pub(crate) fn report(&self, error: DescriptorError) -> Result<(), DescriptorError> {
        match &self.found {
            Some(found) if found.borrow().len() < MAX_FAULTS => {
                found.borrow_mut().push(error);
                Ok(())
            }
            Some(_) | None => Err(error),
        }
    }

    /// The value of a part of the work; `None` if its fault was taken.
    pub(crate) fn keep<T>(&self, part: Result<T, DescriptorError>) -> Result<Option<T>, DescriptorError> {
        match part {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.report(error).map(|()| None),
        }
    }

    /// What was collected, in order.
    pub(crate) fn into_found(self) -> Vec<DescriptorError> {
        self.found.map(RefCell::into_inner).unwrap_or_default()
    }
}
