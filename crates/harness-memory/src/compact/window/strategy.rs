//! Leaving out the oldest groups.

use harness_core::port::TokenCounter;

use super::state::{ExcludeReason, Window};
use crate::compact::error::CompactError;
use crate::compact::group::GroupKind;

/// Leaves groups of a window out, or puts something shorter in their place.
///
/// ```
/// use harness_core::port::TokenCounter;
/// use harness_memory::compact::window::{SlidingWindow, Window, WindowStrategy};
///
/// /// Keeps a few groups, and fewer when there are very many messages.
/// struct Adaptive(SlidingWindow, SlidingWindow);
///
/// impl WindowStrategy for Adaptive {
///     fn apply(&self, window: &mut Window, counter: &dyn TokenCounter) -> bool {
///         let strategy = if window.included_messages() > 1_000 { &self.1 } else { &self.0 };
///         strategy.apply(window, counter)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no strategy over a window",
    note = "implement `WindowStrategy::apply`, or take one of `harness_memory::compact::window`"
)]
pub trait WindowStrategy: Send + Sync {
    /// Makes the window smaller; whether it changed. `counter` counts texts that are made.
    fn apply(&self, window: &mut Window, counter: &dyn TokenCounter) -> bool;
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Tokens.
    #[default]
    Tokens,
    /// Messages.
    Messages,
}

impl Measure {
    fn of(self, window: &Window) -> u64 {
        match self {
            Self::Tokens => window.included_tokens(),
            Self::Messages => window.included_messages() as u64,
        }
    }
}

/// Leaves out the oldest groups once there is too much, until little enough is left.
///
/// ```
/// use harness_core::message::Message;
/// use harness_memory::compact::item::Item;
/// use harness_memory::compact::tokens::CharacterCounter;
/// use harness_memory::compact::window::{Measure, Truncation, Window, WindowStrategy};
///
/// let items = ["a", "b", "c", "d"].map(|text| Item::new(text, Message::user(text)));
/// let mut window = Window::of(&items, &CharacterCounter);
/// let truncation = Truncation::new(Measure::Messages, 3, 2)?;
/// assert!(truncation.apply(&mut window, &CharacterCounter));
/// assert_eq!(window.included_messages(), 2);
/// # Ok::<(), harness_memory::compact::CompactError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// What is counted.
    pub measure: Measure,
    /// More than that is too much.
    pub max_n: u64,
    /// So much is left, or the newest group.
    pub compact_to: u64,
    /// Whether the system part stays whatever happens. Default true.
    pub preserve_system: bool,
    /// Whether what the user said first stays whatever happens. Default false.
    pub preserve_first_user: bool,
}

impl Truncation {
    /// Truncates to `compact_to` once there is more than `max_n`.
    ///
    /// # Errors
    /// When one of them is 0, or `compact_to` is the greater one.
    pub fn new(measure: Measure, max_n: u64, compact_to: u64) -> Result<Self, CompactError> {
        positive("max_n", max_n)?;
        positive("compact_to", compact_to)?;
        if compact_to > max_n {
            return Err(CompactError::InvalidSetting {
                setting: "compact_to",
                value: compact_to.to_string(),
                wanted: "at most `max_n`",
            });
        }
        Ok(Self { measure, max_n, compact_to, preserve_system: true, preserve_first_user: false })
    }
}

impl WindowStrategy for Truncation {
    fn apply(&self, window: &mut Window, _: &dyn TokenCounter) -> bool {
        if self.measure.of(window) <= self.max_n {
            return false;
        }
        let first_user = window.groups().iter().position(|group| group.kind == GroupKind::User);
        let candidates = window.shown(|group| !self.preserve_system || group.kind != GroupKind::System);
        let mut changed = false;
        for index in candidates {
            if self.measure.of(window) <= self.compact_to {
                break;
            }
            if !self.preserve_first_user || Some(index) != first_user {
                changed |= window.exclude(index, ExcludeReason::Truncation);
            }
        }
        changed
    }
}

/// Keeps the newest groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlidingWindow {
    /// How many groups that are not of the system stay.
    pub keep_last_groups: usize,
    /// Whether the system part stays, too. Default true.
    pub preserve_system: bool,
}

impl SlidingWindow {
    /// Keeps so many groups and the system part.
    ///
    /// # Errors
    /// When it is 0.
    pub fn new(keep_last_groups: usize) -> Result<Self, CompactError> {
        positive("keep_last_groups", keep_last_groups as u64)?;
        Ok(Self { keep_last_groups, preserve_system: true })
    }
}

impl WindowStrategy for SlidingWindow {
    fn apply(&self, window: &mut Window, _: &dyn TokenCounter) -> bool {
        let others = window.shown(|group| group.kind != GroupKind::System);
        let mut old = others;
        old.truncate(old.len().saturating_sub(self.keep_last_groups));
        if !self.preserve_system {
            old.extend(window.shown(|group| group.kind == GroupKind::System));
        }
        let mut changed = false;
        for index in old {
            changed |= window.exclude(index, ExcludeReason::SlidingWindow);
        }
        changed
    }
}

/// A setting that must not be 0.
pub(super) fn positive(setting: &'static str, value: u64) -> Result<(), CompactError> {
    if value > 0 {
        return Ok(());
    }
    Err(CompactError::InvalidSetting { setting, value: value.to_string(), wanted: "at least 1" })
}
