//! What a summary says of the messages behind it.
//!
//! A compaction that is made for good leaves answers whose usage was counted with what is gone. The summary carries
//! how many messages were behind it then, in its metadata: that goes wherever the transcript goes, through a
//! session and a restart.

use harness_core::Json;
use harness_core::message::{Message, UserMessage};

use crate::compact::shown::Shown;

const KEPT: &str = "harness.compaction.kept";

/// Writes into a message that `kept` messages were behind it when it became the summary; not into one whose
/// metadata is no object. Whether it was written.
pub(super) fn mark(user: &mut UserMessage, kept: usize) -> bool {
    let metadata = user.metadata.clone().unwrap_or_default();
    let Ok(mut entries) = metadata.entries() else { return false };
    entries.retain(|(key, _)| key != KEPT);
    entries.extend(Json::of(&kept).ok().map(|kept| (KEPT.to_owned(), kept)));
    let texts = entries.iter().map(|(key, value)| format!("{}:{}", Json::string(key).text(), value.text()));
    let marked = Json::parse(&format!("{{{}}}", texts.collect::<Vec<_>>().join(","))).ok();
    let written = marked.is_some();
    user.metadata = marked.or(user.metadata.take());
    written
}

/// The first of these messages that came after the last compaction.
pub(super) fn behind_compaction(items: &[Shown]) -> usize {
    let marked = items.iter().enumerate().rev().find_map(|(at, item)| Some((at, kept(&item.message)?)));
    marked.map_or(0, |(at, kept)| at.saturating_add(1).saturating_add(kept))
}

fn kept(message: &Message) -> Option<usize> {
    let Message::User(user) = message else { return None };
    let metadata = user.metadata.as_ref().filter(|metadata| metadata.text().contains(KEPT))?;
    let (_, kept) = metadata.entries().ok()?.into_iter().find(|(key, _)| key == KEPT)?;
    kept.to().ok()
}
