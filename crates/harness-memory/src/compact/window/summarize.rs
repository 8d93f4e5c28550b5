//! Old groups summarized.

use std::fmt::Write as _;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::TokenCounter;

use super::state::{ExcludeReason, Replacement, Window};
use super::strategy::positive;
use crate::compact::error::CompactError;
use crate::compact::group::GroupKind;

/// Failures in a row after which summarizing counts as broken.
const BROKEN_AFTER: u32 = 3;

/// Puts one summary in the place of the oldest groups once there are many messages.
///
/// It calls nobody: [`Summarization::request`] says what is to be summarized, [`Summarization::accept`]
/// takes the reply. A reply that fails or says nothing changes nothing.
///
/// ```
/// use harness_core::message::Message;
/// use harness_memory::compact::item::Item;
/// use harness_memory::compact::tokens::CharacterCounter;
/// use harness_memory::compact::window::{Summarization, Window};
///
/// let items: Vec<_> = (0..8).map(|n| Item::new(format!("u{n}"), Message::user("hello"))).collect();
/// let mut window = Window::of(&items, &CharacterCounter);
/// let mut summarization = Summarization::new(4, 2)?;
/// let request = summarization.request(&window, &CharacterCounter).ok_or("eight are more than six")?;
/// assert!(request.text.starts_with("1. [user] hello"));
/// assert!(summarization.accept(&mut window, &request, Ok("They greet."), &CharacterCounter));
/// assert_eq!(window.included_messages(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summarization {
    /// About so many messages that are not of the system stay. Default 4.
    pub target_count: usize,
    /// So many more are allowed before anything is done. Default 2.
    pub threshold: usize,
    /// What is summarized at once has at most so many tokens, as written for the summarizer; what is over
    /// stays. Default 8,000.
    pub max_summary_input_tokens: u64,
    failures: u32,
}

impl Default for Summarization {
    fn default() -> Self {
        Self { target_count: 4, threshold: 2, max_summary_input_tokens: 8_000, failures: 0 }
    }
}

/// What is to be summarized.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SummaryRequest {
    /// The messages for the summarizer, one a line with number and role.
    pub text: String,
    groups: Vec<usize>,
    total_messages: usize,
}

impl Summarization {
    /// Summarizes down to `target_count` messages once there are `threshold` more.
    ///
    /// # Errors
    /// When `target_count` is 0.
    pub fn new(target_count: usize, threshold: usize) -> Result<Self, CompactError> {
        positive("target_count", target_count as u64)?;
        Ok(Self { target_count, threshold, ..Self::default() })
    }

    /// What is to be summarized now; `None` when there is no need.
    pub fn request(&self, window: &Window, counter: &dyn TokenCounter) -> Option<SummaryRequest> {
        let others = window.shown(|group| group.kind != GroupKind::System);
        let size = |index: &usize| window.groups().get(*index).map_or(0, |group| group.messages.len());
        if others.iter().map(size).sum::<usize>() <= self.target_count + self.threshold {
            return None;
        }
        let mut kept = 0;
        let mut border = others.len();
        for index in others.iter().rev() {
            if kept >= self.target_count && border < others.len() {
                break;
            }
            kept += size(index);
            border -= 1;
        }
        self.request_of(window, others.get(..border)?, counter)
    }

    /// The oldest of these groups, as far as they fit into one request.
    fn request_of(
        &self,
        window: &Window,
        candidates: &[usize],
        counter: &dyn TokenCounter,
    ) -> Option<SummaryRequest> {
        let mut request = SummaryRequest {
            text: String::new(),
            groups: Vec::new(),
            total_messages: window.total_messages(),
        };
        let (mut number, mut tokens) = (0, 0);
        for index in candidates {
            let Some(group) = window.groups().get(*index).filter(|group| !group.is_kept) else { continue };
            let mut text = String::new();
            for part in group.messages.iter().flat_map(|message| &message.parts) {
                number += 1;
                let _ = writeln!(text, "{number}. [{}] {}", part.role(), said(part));
            }
            tokens += counter.count(&text);
            if tokens > self.max_summary_input_tokens && !request.groups.is_empty() {
                break;
            }
            request.text += &text;
            request.groups.push(*index);
        }
        (!request.groups.is_empty()).then_some(request)
    }

    /// Puts the reply in the place of what was requested; whether anything changed. The window must be the
    /// one of the request; a window that has changed since is left as it is.
    pub fn accept(
        &mut self,
        window: &mut Window,
        request: &SummaryRequest,
        reply: Result<&str, CompactError>,
        counter: &dyn TokenCounter,
    ) -> bool {
        let summary = reply.map(str::trim).unwrap_or_default();
        if summary.is_empty() {
            self.failures = self.failures.saturating_add(1);
            return false;
        }
        self.failures = 0;
        if window.total_messages() != request.total_messages {
            return false;
        }
        let replacement = Replacement {
            groups: request.groups.clone(),
            id: format!("summary_{}", request.total_messages).into(),
            text: summary.to_owned(),
            reason: ExcludeReason::Summarized,
        };
        let made = window.replace(&replacement, counter);
        let changed = made.is_some();
        window.insert(made.into_iter().collect());
        changed
    }

    /// How many replies in a row failed or said nothing.
    pub fn failures_in_a_row(&self) -> u32 {
        self.failures
    }

    /// Whether so many failed in a row that somebody should be told: three.
    pub fn is_broken(&self) -> bool {
        self.failures >= BROKEN_AFTER
    }
}

/// What a message says, for the summarizer: its text, its calls with their arguments, its result.
fn said(message: &Message) -> String {
    let calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
    let calls = calls.map(|call| format!("calls {}({})", call.name, call.arguments));
    let text = Some(message.joined_text()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("; ")
}
