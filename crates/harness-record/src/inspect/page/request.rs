//! Content of a model request.
//!
//! A message, a text of instructions and a list of tools is shown in full where a request has it first; later requests
//! link to that place. So a page grows with the run, and not with its square.

use std::collections::HashMap;

use harness_core::display;
use harness_core::message::{Block, Message};
use maud::{Markup, html};

use super::markdown::markdown;
use super::story::{pretty_result, text_of};
use super::{RunPage, details};
use crate::inspect::timeline::Step;
use crate::inspect::write::{SafeText, pretty, visible};
use crate::prompts::{OfferedTool, SeenMessage, SeenRequest};

/// Maximum links to messages of earlier requests in one request.
const MOST_LINKS: usize = 200;

/// Characters of a link to a message.
const LINK: usize = 80;

/// Content that earlier requests have shown.
#[derive(Debug, Default)]
pub(super) struct Shown<'a> {
    /// Ids of messages by address.
    messages: HashMap<usize, String>,
    instructions: HashMap<&'a str, u32>,
    tools: HashMap<Vec<usize>, u32>,
    /// Number and messages of the last request.
    last: Option<(u32, Vec<Key>)>,
}

/// Identity of a message: its address, or a number of missing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Message(usize),
    Missing(u64),
}

fn key(message: &SeenMessage<'_>) -> Key {
    match message {
        SeenMessage::Item(_, message) | SeenMessage::Made(message) => {
            Key::Message(std::ptr::from_ref::<Message>(message).addr())
        }
        SeenMessage::Missing(count) => Key::Missing(*count),
    }
}

impl RunPage<'_> {
    /// The request of a step.
    pub(super) fn request<'a>(&self, step: &Step<'a>, shown: &mut Shown<'a>) -> Markup {
        let Some(seen) = &step.seen else { return self.unseen(step) };
        let turn = step.call.turn;
        let made = seen.messages.iter().filter(|message| matches!(message, SeenMessage::Made(_))).count();
        let count =
            |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
        let mut summary = vec![count(messages(seen), "message"), count(seen.tools.len(), "tool")];
        if made > 0 {
            summary.push(format!("{made} of the messages only for this request"));
        }
        if seen.closing {
            summary.push("closing request, without calls".to_owned());
        }
        html! {
            details.request {
                summary { "Request" span.soft { " · " (summary.join(" · ")) } }
                (self.instructions(turn, seen, shown))
                (self.messages(turn, seen, shown))
                (self.tools(turn, seen, shown))
                @if let Some(settings) = seen.settings { (details(false, "Settings", &pretty(settings))) }
                @if let Some(output) = seen.output { (details(false, "Schema of the answer", &pretty(output))) }
            }
        }
    }

    /// A request whose content is not recorded.
    fn unseen(&self, step: &Step<'_>) -> Markup {
        let counts = step.request.map(|request| (request.message_count, request.tool_count));
        let limit = self.record.prompts.as_ref().map(|prompts| prompts.limit).filter(|limit| *limit > 0);
        let why = match limit {
            Some(limit) => format!("left out, because the record holds at most {limit} bytes of prompts"),
            None => "content not recorded".to_owned(),
        };
        html! {
            div.soft.small {
                "Request: "
                @if let Some((messages, tools)) = counts { (messages) " messages, " (tools) " tools; " }
                (why)
            }
            @if let Some(text) = step.instructions { (details(false, "Instructions", text)) }
        }
    }

    fn instructions<'a>(&self, turn: u32, seen: &SeenRequest<'a>, shown: &mut Shown<'a>) -> Markup {
        let text = seen.instructions;
        if text.is_empty() {
            return html! { p.soft.small { "No instructions." } };
        }
        let first = *shown.instructions.entry(text).or_insert(turn);
        if first != turn {
            return html! { p.soft.small { "Instructions: as in " (self.link_to(first)) } };
        }
        html! { details.part open { summary { "Instructions" } div.card.md { (markdown(text)) } } }
    }

    fn tools(&self, turn: u32, seen: &SeenRequest<'_>, shown: &mut Shown<'_>) -> Markup {
        if seen.tools.is_empty() {
            return html! { p.soft.small { "No tools." } };
        }
        let key = seen.tools.iter().map(|tool| std::ptr::from_ref::<OfferedTool>(tool).addr()).collect();
        let first = *shown.tools.entry(key).or_insert(turn);
        if first != turn {
            return html! { p.soft.small { "Tools: as in " (self.link_to(first)) } };
        }
        html! {
            details.part {
                summary { "Tools" span.soft { " · " (seen.tools.len()) } }
                @for tool in &seen.tools {
                    details.offered {
                        summary {
                            b.mono { (SafeText(tool.name.as_str())) }
                            " " span.soft { (SafeText(&start(&tool.description))) }
                        }
                        @if start(&tool.description) != tool.description {
                            div.md { (markdown(&tool.description)) }
                        }
                        pre { (SafeText(&pretty(&tool.parameters))) }
                    }
                }
            }
        }
    }

    fn messages(&self, turn: u32, seen: &SeenRequest<'_>, shown: &mut Shown<'_>) -> Markup {
        let keys: Vec<Key> = seen.messages.iter().map(key).collect();
        let (before, known) = match shown.last.replace((turn, keys.clone())) {
            Some((before, last)) => {
                (before, last.iter().zip(&keys).take_while(|(last, key)| last == key).count())
            }
            None => (turn, 0),
        };
        let new = seen.messages.get(known..).unwrap_or_default();
        let mut links = 0_usize;
        html! {
            details.part open {
                summary { "Messages" span.soft { " · " (messages(seen)) } }
                ol.messages {
                    @if known > 0 {
                        li.soft.small {
                            @if known == 1 { "The first message" } @else { "The first " (known) " messages" }
                            " as in " (self.link_to(before))
                        }
                    }
                    @for message in new { (self.message(message, shown, &mut links)) }
                    @if links > MOST_LINKS {
                        li.soft.small { (links - MOST_LINKS) " more messages of earlier requests" }
                    }
                }
            }
        }
    }

    /// A message in full, or a link to where it is.
    fn message(&self, message: &SeenMessage<'_>, shown: &mut Shown<'_>, links: &mut usize) -> Markup {
        let (message, from) = match message {
            SeenMessage::Missing(count) => {
                return html! { li.soft.small { (count) " messages that are not in the record" } };
            }
            SeenMessage::Item(_, message) => (*message, ""),
            SeenMessage::Made(message) => (*message, "only for this request"),
        };
        let address = std::ptr::from_ref::<Message>(message).addr();
        if let Some(id) = shown.messages.get(&address) {
            *links = links.saturating_add(1);
            if *links > MOST_LINKS {
                return html! {};
            }
            let text = start(&text_of(message));
            return html! {
                li.small {
                    span.role { (role(message)) } " " a href={ "#" (id) } { (SafeText(&text)) @if text.is_empty() { "message" } }
                }
            };
        }
        let id = format!("{}message-{}", self.prefix, shown.messages.len().saturating_add(1));
        let inner = content(message);
        let made = html! {
            li id=(id) {
                div { span.role { (role(message)) } @if !from.is_empty() { " " span.badge.blue { (from) } } }
                (inner)
            }
        };
        shown.messages.insert(address, id);
        made
    }

    /// Link to the request with a number.
    fn link_to(&self, turn: u32) -> Markup {
        let call = self.record.model_calls.iter().find(|call| call.turn == turn);
        html! {
            @if let Some(call) = call {
                a href={ "#" (self.anchor(call.seq)) } { "request " (turn) }
            } @else {
                "request " (turn)
            }
        }
    }
}

/// Role of a message in words.
pub(super) fn role(message: &Message) -> &'static str {
    match message {
        Message::System(_) => "system",
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool result",
        Message::Custom(_) | _ => "application",
    }
}

/// Number of messages of a request.
fn messages(seen: &SeenRequest<'_>) -> usize {
    let count = |message: &SeenMessage<'_>| match message {
        SeenMessage::Missing(count) => usize::try_from(*count).unwrap_or(usize::MAX),
        SeenMessage::Item(..) | SeenMessage::Made(_) => 1,
    };
    seen.messages.iter().map(count).fold(0, usize::saturating_add)
}

/// Content of a message: text, calls or result.
fn content(message: &Message) -> Markup {
    if let Message::ToolResult(result) = message {
        return html! {
            div.soft.small { "result of " span.mono { (SafeText(result.tool_name.as_str())) } }
            pre { (SafeText(&pretty_result(result))) }
        };
    }
    let text = text_of(message);
    html! {
        @if !text.is_empty() { div.md { (markdown(&text)) } }
        @for call in message.content().iter().filter_map(Block::as_tool_call) {
            div.soft.small { "call of " span.mono { (SafeText(call.name.as_str())) } }
            pre { (SafeText(&pretty(&call.arguments))) }
        }
    }
}

/// Start of the first line of a text.
fn start(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    display::shortened(&visible(line), LINK)
}
