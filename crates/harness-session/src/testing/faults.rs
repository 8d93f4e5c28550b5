//! A disk that breaks when told to.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::jsonl::{Fate, OpenOptions, Probe};

/// What happens at one change to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The process ends just before it.
    CrashBefore,
    /// The process ends when it has written that many bytes; before anything that is no write.
    CrashTorn(usize),
    /// The process ends just after it.
    CrashAfter,
    /// The disk is full when that many bytes are written. Later changes work.
    Full(usize),
    /// The disk fails when that many bytes are written. Later changes work.
    Broken(usize),
}

/// Breaks one of the changes that a [`crate::JsonlSession`] makes to the disk, and counts them.
///
/// After a crash every later change fails, as nothing happens after the end of a process. Drop the session
/// then, and open it again without faults.
///
/// ```
/// use harness_session::OpenOptions;
/// use harness_session::testing::{Fault, Faults};
///
/// let faults = Faults::at(1, Fault::Full(10));
/// let options = OpenOptions::new().faults(&faults);
/// assert_eq!(faults.steps(), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    at: Option<(usize, Fault)>,
    steps: usize,
    dead: bool,
}

impl Faults {
    /// Breaks nothing and counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Breaks the change number `step`, counted from 0: each write, cut, sync and rename is one.
    pub fn at(step: usize, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(Plan { at: Some((step, fault)), ..Plan::default() })))
    }

    /// How many changes there were.
    pub fn steps(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps
    }
}

impl Probe for Faults {
    fn step(&self) -> Fate {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = plan.steps;
        plan.steps += 1;
        let ended = || io::Error::other("the process has ended");
        if plan.dead {
            return Fate::Torn(0, ended());
        }
        let Some((_, fault)) = plan.at.filter(|(at, _)| *at == number) else { return Fate::Done };
        plan.dead = matches!(fault, Fault::CrashBefore | Fault::CrashTorn(_) | Fault::CrashAfter);
        match fault {
            Fault::CrashBefore => Fate::Torn(0, ended()),
            Fault::CrashTorn(bytes) => Fate::Torn(bytes, ended()),
            Fault::CrashAfter => Fate::DoneThen(ended()),
            Fault::Full(bytes) => Fate::Torn(bytes, io::ErrorKind::StorageFull.into()),
            Fault::Broken(bytes) => Fate::Torn(bytes, io::Error::other("input/output error")),
        }
    }
}

impl OpenOptions {
    /// Lets `faults` break changes to the disk. Changes to the lock file are left alone.
    #[must_use]
    pub fn faults(self, faults: &Faults) -> Self {
        self.probe(Arc::new(faults.clone()))
    }
}
