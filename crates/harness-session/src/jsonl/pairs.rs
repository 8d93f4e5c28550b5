//! Making the calls and results of a session file a legal transcript.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::TranscriptRepair;
use harness_core::transcript::{self, Provenance, Repaired};
use harness_core::{EntryId, JsonObject};

use super::repair::{KeptLine, Quarantined, RepairReport};
use crate::chain::{Chain, End, numbered};
use crate::fold::{Item, Record};

/// The lines of a file whose transcript is being repaired.
pub(super) struct Pairs<'a> {
    pub(super) chain: &'a Chain,
    pub(super) records: &'a [Record],
}

/// An entry of the way to the leaf as it will be.
enum Step {
    Old(u32),
    Made(Arc<Message>),
}

/// The lines of a file, by where they go.
struct Sorted {
    /// Those before all entries.
    out: Vec<KeptLine>,
    /// Those on the way to the leaf that stay, by their place.
    own: HashMap<u32, KeptLine>,
    /// Those of other branches, by the place of the entry that they follow.
    branches: HashMap<Option<u32>, Vec<KeptLine>>,
}

impl Pairs<'_> {
    /// The lines with calls and results in their order: lost results are made, marked `interrupted`, and those
    /// that belong to no call go to the report's quarantined lines. Other branches stay as they are.
    pub(super) fn mend(
        &self,
        lines: Vec<KeptLine>,
        report: &mut RepairReport,
    ) -> serde_json::Result<Vec<KeptLine>> {
        let path = self.chain.places_to(self.chain.at(End::Last));
        let messages: Vec<(u32, &Arc<Message>)> =
            path.iter().filter_map(|place| Some((*place, self.message(*place)?))).collect();
        let Repaired { messages: repaired, defects, .. } =
            transcript::repair(messages.iter().map(|(_, message)| *message));
        if defects.is_empty() {
            return Ok(lines);
        }
        let place_of = |at: usize| messages.get(at).map(|(place, _)| *place);
        for defect in defects {
            let line = place_of(defect.at).and_then(|place| self.records.get(place as usize));
            let line = line.map(|record| u64::from(record.line));
            report.repairs.push(TranscriptRepair { line, defect });
        }
        let steps = repaired.into_iter().filter_map(|(message, from)| match from {
            Provenance::Kept(at) => place_of(at).map(Step::Old),
            Provenance::Made { answer, .. } => {
                let noted = place_of(answer).and_then(|place| self.noted(&path, place, &message));
                Some(Step::Made(noted.unwrap_or(message)))
            }
            _ => None,
        });
        let steps = self.with_other_entries(&path, steps.collect());
        self.put_together(lines, &path, steps, report)
    }

    /// The result that was stored beside the transcript for a call of the answer at a place.
    fn noted(&self, path: &[u32], answer: u32, made: &Message) -> Option<Arc<Message>> {
        let call = &made.as_tool_result()?.tool_call_id;
        let after = path.iter().skip_while(|place| **place != answer).skip(1);
        let batch = after
            .take_while(|place| self.message(**place).is_none_or(|message| message.as_assistant().is_none()));
        batch.filter_map(|place| self.records.get(*place as usize)).find_map(|record| match &record.item {
            Item::Call(note) if note.call == *call => note.result.clone(),
            Item::Call(_)
            | Item::Message(_)
            | Item::RunEnd(_)
            | Item::State(_)
            | Item::Compaction(_)
            | Item::Other => None,
        })
    }

    fn message(&self, place: u32) -> Option<&Arc<Message>> {
        match &self.records.get(place as usize)?.item {
            Item::Message(message) => Some(message),
            Item::Call(_) | Item::RunEnd(_) | Item::State(_) | Item::Compaction(_) | Item::Other => None,
        }
    }

    /// Keeps entries without a message after the message that they follow.
    fn with_other_entries(&self, path: &[u32], steps: Vec<Step>) -> Vec<Step> {
        let stays: HashSet<u32> = steps.iter().filter_map(Step::place).collect();
        let mut behind: HashMap<Option<u32>, Vec<u32>> = HashMap::new();
        let mut last = None;
        for place in path {
            if self.message(*place).is_none() {
                behind.entry(last).or_default().push(*place);
            } else if stays.contains(place) {
                last = Some(*place);
            }
        }
        let mut all: Vec<Step> =
            behind.remove(&None).unwrap_or_default().into_iter().map(Step::Old).collect();
        for step in steps {
            let place = step.place();
            all.push(step);
            let others = place.and_then(|place| behind.remove(&Some(place))).unwrap_or_default();
            all.extend(others.into_iter().map(Step::Old));
        }
        all
    }

    /// Parts the lines by where they go; what is on the way to the leaf and does not stay is left out.
    fn sorted(
        &self,
        lines: Vec<KeptLine>,
        path: &[u32],
        stays: &HashSet<u32>,
        report: &mut RepairReport,
    ) -> serde_json::Result<Sorted> {
        let on_path: HashSet<u32> = path.iter().copied().collect();
        let (mut own, mut branches) = (HashMap::new(), HashMap::<Option<u32>, Vec<KeptLine>>::new());
        let mut out = Vec::with_capacity(lines.len());
        for line in lines {
            match line.place {
                None => out.push(line),
                Some(place) if stays.contains(&place) => drop(own.insert(place, line)),
                Some(place) if on_path.contains(&place) => {
                    report.quarantined.push(left_out(&line, report));
                }
                Some(place) => {
                    let parent = self.standing(self.chain.parent(place), &on_path, stays);
                    let line =
                        self.following(line, parent.and_then(|parent| self.chain.id(parent)).as_ref())?;
                    branches.entry(self.anchor(place, &on_path, stays)).or_default().push(line);
                }
            }
        }
        report.quarantined.sort_by_key(|line| line.line);
        out.extend(branches.remove(&None).unwrap_or_default());
        Ok(Sorted { out, own, branches })
    }

    /// Writes the path to the leaf in its new order. Other branches follow the entry where they
    /// branched off.
    fn put_together(
        &self,
        lines: Vec<KeptLine>,
        path: &[u32],
        steps: Vec<Step>,
        report: &mut RepairReport,
    ) -> serde_json::Result<Vec<KeptLine>> {
        let stays: HashSet<u32> = steps.iter().filter_map(Step::place).collect();
        let Sorted { mut out, mut own, mut branches } = self.sorted(lines, path, &stays, report)?;
        let (mut last, mut made) = (None, self.chain.made());
        let mut ends_in_branch = false;
        for step in steps {
            let (id, line) = match &step {
                Step::Made(message) => {
                    made = made.saturating_add(1);
                    let id = numbered(made);
                    let text = serde_json::to_string(message)?;
                    let text = crate::tree::wrapped(&id, last.as_ref(), &text)?;
                    (Some(id), Some(KeptLine::made(text)))
                }
                Step::Old(place) => {
                    let line =
                        own.remove(place).map(|line| self.following(line, last.as_ref())).transpose()?;
                    (self.chain.id(*place), line)
                }
            };
            out.extend(line);
            last = id.or(last);
            let here = step.place().and_then(|place| branches.remove(&Some(place)));
            ends_in_branch = here.is_some();
            out.extend(here.unwrap_or_default());
        }
        if ends_in_branch {
            // The last line of a file is where it goes on.
            let id = numbered(made.saturating_add(1));
            let parent = crate::tree::named(last.as_ref());
            let text = format!(
                r#"{{"type":"custom","id":"{id}","parent_id":{},"custom_type":"session_repair"}}"#,
                parent.text()
            );
            out.push(KeptLine::made(text));
        }
        Ok(out)
    }

    /// The nearest entry from `place` upwards that stays.
    fn standing(&self, mut place: Option<u32>, on_path: &HashSet<u32>, stays: &HashSet<u32>) -> Option<u32> {
        while let Some(at) = place.filter(|at| on_path.contains(at) && !stays.contains(at)) {
            place = self.chain.parent(at);
        }
        place
    }

    /// The entry of the way to the leaf from which another branch comes.
    fn anchor(&self, place: u32, on_path: &HashSet<u32>, stays: &HashSet<u32>) -> Option<u32> {
        let mut at = Some(place);
        while let Some(place) = at.filter(|place| !stays.contains(place) || !on_path.contains(place)) {
            at = self.chain.parent(place);
        }
        at
    }

    /// The line with another parent, when it has not that one yet.
    fn following(&self, line: KeptLine, parent: Option<&EntryId>) -> serde_json::Result<KeptLine> {
        let before = line.place.and_then(|place| self.chain.parent(place));
        if before.and_then(|before| self.chain.id(before)).as_ref() == parent {
            return Ok(line);
        }
        let mut fields: JsonObject = serde_json::from_str(&line.text)?;
        fields.set("parent_id", crate::tree::named(parent));
        Ok(KeptLine { text: serde_json::to_string(&fields)?, is_new: true, ..line })
    }
}

impl Step {
    fn place(&self) -> Option<u32> {
        match self {
            Self::Old(place) => Some(*place),
            Self::Made(_) => None,
        }
    }
}

/// A line that goes, with what the repair says about it.
fn left_out(line: &KeptLine, report: &RepairReport) -> Quarantined {
    let repair = report.repairs.iter().find(|repair| repair.line == Some(line.line));
    let reason =
        repair.map_or_else(|| "it belongs to no call".to_owned(), |repair| repair.defect.to_string());
    Quarantined { line: line.line, offset: line.offset, bytes: line.bytes, reason }
}
