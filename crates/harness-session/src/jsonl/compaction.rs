//! The line of a compaction.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{CompactionLevel, CompactionNote};
use harness_core::transcript::Plan;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::note::summarized;
use crate::spine::{Part, Shortening, Spine, Spot};

/// Fields of the line that loading needs.
#[derive(Debug, Deserialize)]
pub(crate) struct CompactionLine {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    first_kept_id: Option<String>,
    #[serde(default)]
    plan: Option<Vec<SpanLine>>,
    #[serde(default)]
    permanent: bool,
}

/// A part of a plan: messages are named by the ids of their entries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SpanLine {
    Kept(KeptLine),
    Made(Arc<[Arc<Message>]>),
}

/// Messages from one to another, both of them kept.
#[derive(Debug, Serialize, Deserialize)]
struct KeptLine {
    /// Absent: from the first that follows the compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// Absent: to the end, which moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

impl CompactionLine {
    /// Effect on the transcript, with entries looked up by id; `None` if one is unknown. A line
    /// without a plan shows its summary and the kept entries, as in pi: an unknown first kept entry
    /// keeps nothing from before.
    pub(crate) fn resolve(self, mut find: impl FnMut(&str) -> Option<u32>) -> Option<Shortening<Spot>> {
        let Some(plan) = self.plan else {
            let first = self.first_kept_id.and_then(|id| spot(&id, &mut find));
            let made =
                Part::Made([summarized("What was said before this point, in short:", &self.summary?)].into());
            let parts = vec![made, Part::Kept { first, last: None }];
            return Some(Shortening { parts, permanent: self.permanent });
        };
        let part = |span| match span {
            SpanLine::Kept(KeptLine { first, last }) => Part::Kept { first, last },
            SpanLine::Made(messages) => Part::Made(messages),
        };
        let parts = plan.into_iter().map(part).collect();
        Shortening { parts, permanent: self.permanent }.rename(|id: String| spot(&id, &mut find))
    }
}

/// `e5` is the message of an entry, `e7#0` the first one that a permanent compaction made.
fn spot(name: &str, find: &mut impl FnMut(&str) -> Option<u32>) -> Option<Spot> {
    if let Some(entry) = find(name) {
        return Some(Spot { entry, made: None });
    }
    let (entry, made) = name.rsplit_once('#')?;
    Some(Spot { entry: find(entry)?, made: Some(made.parse().ok()?) })
}

fn name(spot: Spot, chain: &Chain) -> Option<String> {
    let id = chain.id_ahead(spot.entry)?;
    Some(spot.made.map_or_else(|| id.to_string(), |made| format!("{id}#{made}")))
}

/// The part of the line that is its own.
#[derive(Debug, Default)]
pub(crate) struct WrittenCompaction {
    first_kept_id: Option<String>,
    plan: Vec<SpanLine>,
    permanent: bool,
}

impl WrittenCompaction {
    /// Names the messages of a plan by their entries.
    ///
    /// # Errors
    /// When it kept a message that has no entry.
    pub(crate) fn new(
        note: &CompactionNote,
        plan: &Plan,
        permanent: bool,
        spine: &Spine,
        chain: &Chain,
    ) -> Result<Self, String> {
        let first = usize::try_from(note.first_kept).ok().and_then(|at| spine.spot(at));
        let named = spine.name(plan, permanent).rename(|spot| name(spot, chain));
        let named = named.ok_or("the plan keeps a message that is not in the session")?;
        let span = |part| match part {
            Part::Kept { first, last } => SpanLine::Kept(KeptLine { first, last }),
            Part::Made(messages) => SpanLine::Made(messages),
        };
        Ok(Self {
            first_kept_id: first.and_then(|spot| name(spot, chain)),
            plan: named.parts.into_iter().map(span).collect(),
            permanent,
        })
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M, note: &CompactionNote) -> Result<(), M::Error> {
        if let Some(summary) = &note.summary {
            map.serialize_entry("summary", summary)?;
        }
        if let Some(first) = &self.first_kept_id {
            map.serialize_entry("first_kept_id", first)?;
        }
        map.serialize_entry("tokens_before", &note.tokens_before)?;
        map.serialize_entry("tokens_after", &note.tokens_after)?;
        map.serialize_entry("plan", &self.plan)?;
        if self.permanent {
            map.serialize_entry("permanent", &true)?;
        }
        map.serialize_entry("details", &Details::from(note))
    }
}

/// Details for display and metrics.
#[derive(Serialize)]
struct Details<'a> {
    target: u64,
    plan_version: u32,
    actions: &'a [(String, u32)],
    level: CompactionLevel,
}

impl<'a> From<&'a CompactionNote> for Details<'a> {
    fn from(note: &'a CompactionNote) -> Self {
        Self {
            target: note.target,
            plan_version: note.plan_version,
            actions: &note.actions,
            level: note.level,
        }
    }
}
