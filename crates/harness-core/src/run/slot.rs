//! The control of a run, as a part of its state.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PlainControl;
use crate::json::Json;
use crate::port::Control;

/// The control of a run. Stored as what it saves; a run that is restored has one that was made anew, and goes on
/// with what was stored.
pub(super) struct ControlSlot {
    control: Box<dyn Control>,
    /// What was read, until a control takes it.
    saved: Option<Json>,
}

impl Default for ControlSlot {
    fn default() -> Self {
        Self::new(Box::<PlainControl>::default())
    }
}

impl ControlSlot {
    pub(super) fn new(control: Box<dyn Control>) -> Self {
        Self { control, saved: None }
    }

    pub(super) fn get(&self) -> &dyn Control {
        &*self.control
    }

    pub(super) fn get_mut(&mut self) -> &mut dyn Control {
        &mut *self.control
    }

    /// Takes the control of a run that was made anew.
    pub(super) fn take_over(&mut self, fresh: Self) -> Result<(), serde_json::Error> {
        self.control = fresh.control;
        match self.saved.take() {
            Some(saved) => self.control.restore(&saved),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ControlSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.control.fmt(f)
    }
}

impl Serialize for ControlSlot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.control.save().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ControlSlot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { saved: Some(Json::deserialize(deserializer)?), ..Self::default() })
    }
}
