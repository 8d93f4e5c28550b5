//! A view as a list, and a list as a plan.

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

impl Shown {
    /// A message that is not in the transcript.
    pub(crate) fn made(message: impl Into<Message>) -> Self {
        Self { message: Arc::new(message.into()), at: None }
    }
}

/// What `plan` shows of `log`.
pub(crate) fn shown_by(log: &Prefix, plan: Option<&Plan>) -> Vec<Shown> {
    let kept = |from: usize, end: usize| {
        let places = from..end.min(log.len());
        places
            .filter_map(|at| log.get(at).map(|message| Shown { message: Arc::clone(message), at: Some(at) }))
    };
    let Some(plan) = plan else { return kept(0, log.len()).collect() };
    let mut items = Vec::new();
    for span in plan.spans.iter() {
        match span {
            Span::Kept(range) => items.extend(kept(range.start, range.end)),
            Span::Made(messages) => {
                items.extend(messages.iter().map(|message| Shown { message: Arc::clone(message), at: None }));
            }
        }
    }
    items
}

/// Whether a view grows with its transcript.
pub(crate) fn is_open(log: &Prefix, plan: Option<&Plan>) -> bool {
    plan.is_none_or(|plan| {
        plan.spans.iter().any(|span| matches!(span, Span::Kept(range) if range.end >= log.len()))
    })
}

/// The plan that shows these messages, in as few spans as there can be. An open one goes on with what is
/// appended to the transcript.
pub(crate) fn plan_of(items: &[Shown], log: &Prefix, open: bool) -> Plan {
    let mut spans: Vec<Span> = Vec::new();
    let mut made: Vec<Arc<Message>> = Vec::new();
    for item in items {
        let goes_on = made.is_empty()
            && matches!((spans.last(), item.at), (Some(Span::Kept(range)), Some(at)) if range.end == at);
        // A kept span must not begin with a result, even where a transcript does.
        let begins_with_result = !goes_on && matches!(*item.message, Message::ToolResult(_));
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

    #[test]
    fn a_plan_comes_back_from_its_items() {
        let log: Transcript = (0..6).map(|i| Arc::new(Message::user(i.to_string()))).collect();
        let made = Span::Made(Arc::from([Arc::new(Message::user("made"))]));
        for spans in [
            vec![Span::Kept(0..usize::MAX)],
            vec![Span::Kept(0..1), made.clone(), Span::Kept(3..usize::MAX)],
            vec![Span::Kept(0..2), Span::Kept(4..5), made, Span::Kept(6..usize::MAX)],
        ] {
            let plan = Plan { spans: spans.into() };
            assert!(is_open(&log, Some(&plan)));
            assert_eq!(plan_of(&shown_by(&log, Some(&plan)), &log, true), plan);
        }
    }
}
