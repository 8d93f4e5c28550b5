//! Error sinks: stop at the first error, or collect all.

use std::cell::RefCell;

use crate::error::DescriptorError;

/// Maximum number of collected errors.
const MAX_FAULTS: usize = 200;

/// Sink to which checks report errors.
///
/// A check passes each error to [`report`](Self::report) and continues after `?`: with
/// [`Faults::first`], the error is returned and ends the work, in the order of the reference
/// implementation; with [`Faults::all`], it is collected and the check continues.
#[derive(Debug)]
pub(crate) struct Faults {
    /// `None` stops at the first.
    found: Option<RefCell<Vec<DescriptorError>>>,
}

impl Faults {
    /// Creates a sink that stops at the first error.
    pub(crate) fn first() -> Self {
        Self { found: None }
    }

    /// Creates a sink that collects errors, up to a bound.
    pub(crate) fn all() -> Self {
        Self { found: Some(RefCell::default()) }
    }

    /// Whether errors are collected.
    pub(crate) fn collects(&self) -> bool {
        self.found.is_some()
    }

    /// How many were collected.
    pub(crate) fn count(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.borrow().len())
    }

    /// Whether the bound is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.borrow().len() >= MAX_FAULTS)
    }

    /// Reports an error; `Err` ends the work.
    pub(crate) fn report(&self, error: DescriptorError) -> Result<(), DescriptorError> {
        match &self.found {
            Some(found) if found.borrow().len() < MAX_FAULTS => {
                found.borrow_mut().push(error);
                Ok(())
            }
            Some(_) | None => Err(error),
        }
    }

    /// Value of a part of the work; `None` if its error was collected.
    pub(crate) fn keep<T>(&self, part: Result<T, DescriptorError>) -> Result<Option<T>, DescriptorError> {
        match part {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.report(error).map(|()| None),
        }
    }

    /// Collected errors, in order.
    pub(crate) fn into_found(self) -> Vec<DescriptorError> {
        self.found.map(RefCell::into_inner).unwrap_or_default()
    }
}
