//! A disk that fails on request.

use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::OpenOptions;
use crate::disk::{Change, Disk, Fate, Probe};

/// Outcome of one change to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The process ends just before it.
    CrashBefore,
    /// The process ends after writing that many bytes; before any other change.
    CrashTorn(usize),
    /// The process ends just after it.
    CrashAfter,
    /// The disk is full when that many bytes are written. Later changes work.
    Full(usize),
    /// The disk fails (EIO) when that many bytes are written. Later changes work.
    Broken(usize),
    /// The disk is full when that many bytes are written, and stays so until [`Faults::mend`].
    StaysFull(usize),
    /// The disk fails (EIO) after that many bytes, and continues to fail until [`Faults::mend`].
    StaysBroken(usize),
}

/// Breaks one of the changes that a [`crate::FileSession`] makes to the disk, and counts them.
///
/// After a crash every later change fails, as nothing happens after the end of a process. Drop the session
/// then, and open it again without failures.
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
pub struct Faults(Arc<Script>);

#[derive(Debug, Default)]
struct Script {
    plan: Mutex<Plan>,
    /// Signalled when another append waits.
    waited: Condvar,
}

#[derive(Debug, Default)]
struct Plan {
    at: Option<(usize, Fault)>,
    changes: Vec<Change>,
    /// A change that lasts until so many appends have waited.
    lasts: Option<(usize, usize)>,
    /// Change that stalls until it is released, and whether it has started.
    stalls: Option<(usize, bool)>,
    waiting: usize,
    /// Error of every later change.
    lasting: Option<Lasting>,
}

#[derive(Clone, Copy, Debug)]
enum Lasting {
    Dead,
    Full,
    Broken,
}

impl Lasting {
    fn error(self) -> io::Error {
        match self {
            Self::Dead => io::Error::other("the process has ended"),
            Self::Full => io::ErrorKind::StorageFull.into(),
            Self::Broken => rustix::io::Errno::IO.into(),
        }
    }
}

impl Faults {
    /// Breaks nothing and counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Breaks the change number `step`, counted from 0: each opening for writing, write, cut, sync, rename and
    /// removal is one.
    pub fn at(step: usize, fault: Fault) -> Self {
        let faults = Self::default();
        faults.0.plan.lock().at = Some((step, fault));
        faults
    }

    /// Lets the change number `step` last until `appends` appends of other threads wait for it, or for what
    /// comes before them.
    #[must_use]
    pub fn lasting(self, step: usize, appends: usize) -> Self {
        self.0.plan.lock().lasts = Some((step, appends));
        self
    }

    /// Lets the change number `step` last until [`Faults::release`]: a slow disk.
    #[must_use]
    pub fn stalling(self, step: usize) -> Self {
        self.0.plan.lock().stalls = Some((step, false));
        self
    }

    /// Whether the stalling change has started and was not released.
    pub fn is_stalled(&self) -> bool {
        self.0.plan.lock().stalls.is_some_and(|(_, begun)| begun)
    }

    /// Ends the stall.
    pub fn release(&self) {
        self.0.plan.lock().stalls = None;
        self.0.waited.notify_all();
    }

    /// How many changes there were.
    pub fn steps(&self) -> usize {
        self.0.plan.lock().changes.len()
    }

    /// The changes that there were, those that failed too.
    pub fn changes(&self) -> Vec<Change> {
        self.0.plan.lock().changes.clone()
    }

    /// From here on every change works again.
    pub fn mend(&self) {
        let mut plan = self.0.plan.lock();
        plan.lasting = None;
        plan.at = None;
    }
}

impl Probe for Faults {
    fn step(&self, change: Change) -> Fate {
        let mut plan = self.0.plan.lock();
        let number = plan.changes.len();
        plan.changes.push(change);
        while plan.lasts.is_some_and(|(step, appends)| step == number && plan.waiting < appends) {
            self.0.waited.wait(&mut plan);
        }
        while let Some((_, begun)) = plan.stalls.as_mut().filter(|(step, _)| *step == number) {
            *begun = true;
            self.0.waited.wait(&mut plan);
        }
        if let Some(lasting) = plan.lasting {
            return Fate::Torn(0, lasting.error());
        }
        let Some((_, fault)) = plan.at.filter(|(at, _)| *at == number) else { return Fate::Done };
        plan.lasting = match fault {
            Fault::CrashBefore | Fault::CrashTorn(_) | Fault::CrashAfter => Some(Lasting::Dead),
            Fault::StaysFull(_) => Some(Lasting::Full),
            Fault::StaysBroken(_) => Some(Lasting::Broken),
            Fault::Full(_) | Fault::Broken(_) => None,
        };
        match fault {
            Fault::CrashBefore => Fate::Torn(0, Lasting::Dead.error()),
            Fault::CrashTorn(bytes) => Fate::Torn(bytes, Lasting::Dead.error()),
            Fault::CrashAfter => Fate::DoneThen(Lasting::Dead.error()),
            Fault::Full(bytes) | Fault::StaysFull(bytes) => Fate::Torn(bytes, Lasting::Full.error()),
            Fault::Broken(bytes) | Fault::StaysBroken(bytes) => Fate::Torn(bytes, Lasting::Broken.error()),
        }
    }

    fn waits(&self) {
        self.0.plan.lock().waiting += 1;
        self.0.waited.notify_all();
    }
}

impl Faults {
    pub(crate) fn disk(&self) -> Disk {
        Disk { probe: Some(Arc::new(self.clone())) }
    }
}

impl OpenOptions {
    /// Lets `faults` break changes to the disk. Changes to the lock file are left alone.
    #[must_use]
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.disk = faults.disk();
        self
    }
}
