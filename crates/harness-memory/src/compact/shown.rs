//! A view as a list, and the plan that shows it.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::transcript::{Plan, Prefix, Span};

/// A message of a view.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) message: Arc<Message>,
    /// Its position in the transcript; `None` when it was made.
    pub(crate) at: Option<usize>,
}

impl AsRef<Message> for Shown {
    fn as_ref(&self) -> &Message {
        &self.message
    }
}

/// The plan that shows these messages, in as few spans as there can be. An open one continues with messages
/// appended to the transcript.
pub(crate) fn plan_of(items: &[Shown], log: &Prefix, open: bool) -> Plan {
    let mut spans: Vec<Span> = Vec::new();
    let mut made: Vec<Arc<Message>> = Vec::new();
    for item in items {
        let continues = made.is_empty()
            && matches!((spans.last(), item.at), (Some(Span::Kept(range)), Some(at)) if range.end == at);
        // A kept span must not begin with a result, even where a transcript does.
        let begins_with_result = !continues && matches!(*item.message, Message::ToolResult(_));
        let Some(at) = item.at.filter(|_| !begins_with_result) else {
            made.push(Arc::clone(&item.message));
            continue;
        };
        if !made.is_empty() {
            spans.push(Span::Made(std::mem::take(&mut made).into()));
        }
        match spans.last_mut() {
            Some(Span::Kept(range)) if range.end == at => range.end = at + 1,
            Some(Span::Kept(_) | Span::Made(_)) | None => spans.push(Span::Kept(at..at + 1)),
        }
    }
    if !made.is_empty() {
        spans.push(Span::Made(made.into()));
    }
    if open {
        match spans.last_mut() {
            Some(Span::Kept(range)) if range.end == log.len() => range.end = usize::MAX,
            Some(Span::Kept(_) | Span::Made(_)) | None => spans.push(Span::Kept(log.len()..usize::MAX)),
        }
    }
    Plan { spans: spans.into() }
}

#[cfg(test)]
mod tests {
    use harness_core::transcript::Transcript;

    use super::*;

    /// The messages at these positions; `usize::MAX` is a made one.
    fn shown(log: &Transcript, places: &[usize]) -> Vec<Shown> {
        let of_place = |at: &usize| match log.get(*at) {
            Some(message) => Shown { message: Arc::clone(message), at: Some(*at) },
            None => Shown { message: Arc::new(Message::user("made")), at: None },
        };
        places.iter().map(of_place).collect()
    }

    #[test]
    fn a_plan_has_as_few_spans_as_there_can_be() {
        let log: Transcript = (0..6).map(|i| Arc::new(Message::user(i.to_string()))).collect();
        let made = Span::Made(Arc::from([Arc::new(Message::user("made"))]));
        let none = usize::MAX;
        for (places, spans) in [
            (&[0, 1, 2, 3, 4, 5][..], vec![Span::Kept(0..usize::MAX)]),
            (&[0, none, 3, 4, 5], vec![Span::Kept(0..1), made.clone(), Span::Kept(3..usize::MAX)]),
            (&[0, 1, 4, none], vec![Span::Kept(0..2), Span::Kept(4..5), made, Span::Kept(6..usize::MAX)]),
        ] {
            assert_eq!(plan_of(&shown(&log, places), &log, true), Plan { spans: spans.into() });
        }
    }
}
