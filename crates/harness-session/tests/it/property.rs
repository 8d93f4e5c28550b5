//! Any sequence of messages, appended in any portions, comes back equal.

use std::sync::Arc;

use harness_core::message::{
    AssistantMessage, Block, CustomMessage, FinishReason, Message, SystemMessage, ToolCall,
    ToolResultMessage, Usage, UserMessage,
};
use harness_core::port::{Durability, Entry};
use harness_core::{Extra, Json};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Place, head, legal, load, user};

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i128>().prop_map(|number| number.to_string()),
        Just("1e400".to_owned()),
        Just("1.10".to_owned()),
        any::<String>().prop_map(|text| Json::string(&text).text().to_owned()),
    ];
    let nested = leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            vec(("[a-z\u{e9}\\n]{0,3}", inner), 0..4).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.iter().map(|(key, value)| format!("{}:\n{value}", Json::string(key))).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    nested.prop_map(|text| Json::parse(&text).unwrap())
}

/// A value where null means absent.
fn some_json() -> impl Strategy<Value = Option<Json>> {
    json().prop_map(|value| (!value.is_null()).then_some(value))
}

fn extra() -> impl Strategy<Value = Extra> {
    vec(("x-[a-z]{1,4}", json()), 0..3).prop_map(|fields| {
        let mut extra = Extra::default();
        for (key, value) in fields {
            extra.push(key, value);
        }
        extra
    })
}

fn text_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        any::<String>().prop_map(Block::text),
        (any::<String>(), json()).prop_map(|(name, data)| Block::extension(
            "vendor",
            name,
            if data.is_null() { Json::empty_object() } else { data }
        )),
        json().prop_map(|data| Block::Unknown(
            Json::parse(&format!("{{\"type\":\"hologram\",\"data\":{data}}}")).unwrap()
        )),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let call = ("[a-z0-9_]{1,8}", "[a-z]{1,8}", json(), extra()).prop_map(|(id, name, arguments, extra)| {
        let arguments = if arguments.is_null() { Json::empty_object() } else { arguments };
        let mut call = ToolCall::new(id, name, arguments);
        if !extra.is_empty() {
            call.extra = extra;
        }
        Block::from(call)
    });
    let thinking = any::<String>().prop_map(Block::thinking);
    prop_oneof![
        any::<String>().prop_map(|text| SystemMessage::text(text).into()),
        (vec(text_block(), 0..4), some_json(), any::<Option<i64>>(), extra()).prop_map(
            |(content, metadata, timestamp, extra)| {
                let mut message = UserMessage::default();
                (message.content, message.metadata) = (content, metadata);
                (message.timestamp, message.extra) = (timestamp, extra);
                message.into()
            }
        ),
        (vec(prop_oneof![text_block(), call, thinking], 0..5), any::<(u64, u64)>(), "[A-Z]{0,5}", extra())
            .prop_map(|(content, (input, output), reason, extra)| {
                let mut message = AssistantMessage::default();
                message.content = content;
                message.extra = extra;
                message.usage = Some(Arc::new(Usage::tokens(input, output)));
                message.stop_reason = FinishReason::from(&*reason);
                message.into()
            }),
        (vec(text_block(), 0..3), any::<bool>(), some_json()).prop_map(|(content, failed, details)| {
            let call = ToolCall::new("c1", "tool", Json::empty_object());
            let mut message = ToolResultMessage::new(&call, content, failed);
            message.details = details;
            message.into()
        }),
        ("[a-z]{1,6}", some_json()).prop_map(|(kind, data)| CustomMessage::new(kind, data).into()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_messages_in_any_portions_come_back_equal(portions in vec(vec(message().prop_map(Arc::new), 0..4), 0..6), reopen in any::<u8>()) {
        let place = Place::new();
        let mut session = place.open();
        for (count, portion) in portions.iter().enumerate() {
            if reopen & (1 << count) != 0 {
                drop(session);
                session = place.open();
            }
            let entries: Vec<_> = portion.iter().map(Entry::Message).collect();
            session.append_blocking(&head(), &entries, Durability::Flush).unwrap();
        }
        let expected: Vec<_> = portions.concat();
        prop_assert_eq!(&load(&session).unwrap().messages, &legal(&expected));
        prop_assert_eq!(place.path().exists(), !expected.is_empty());
        if !expected.is_empty() {
            let text = place.text();
            prop_assert_eq!(text.split('\n').count(), expected.len() + 2);
            prop_assert!(text.ends_with('\n'));
        }
    }

    /// Law 4 for a cut at any byte: the messages of all whole lines, and the session goes on.
    #[test]
    fn a_file_cut_anywhere_holds_its_whole_lines(messages in vec(message().prop_map(Arc::new), 1..5), cut in any::<prop::sample::Index>()) {
        let place = Place::new();
        let entries: Vec<_> = messages.iter().map(Entry::Message).collect();
        place.open().append_blocking(&head(), &entries, Durability::Flush).unwrap();
        let text = std::fs::read(place.path()).unwrap();
        let cut = cut.index(text.len() + 1);
        std::fs::write(place.path(), &text[..cut]).unwrap();

        // A line is whole without its line feed, too.
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end);
        let whole = ends.filter(|end| *end <= cut).count();
        let session = place.open();
        let kept = load(&session).unwrap().messages;
        let whole = &messages[..whole.saturating_sub(1)];
        prop_assert_eq!(kept, legal(whole));
        let last = user("on");
        session.append_blocking(&head(), &[Entry::Message(&last)], Durability::Flush).unwrap();
        prop_assert_eq!(load(&session).unwrap().messages, legal(&[whole, &[last]].concat()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let place = Place::with(&bytes);
        if let Ok(session) = harness_session::FileSession::open(place.path(), crate::support::options()) {
            if load(&session).is_ok() {
                crate::support::say(&session, "on").unwrap();
                prop_assert!(load(&session).is_ok());
            } else {
                prop_assert_eq!(std::fs::read(place.path()).unwrap(), bytes);
            }
        }
    }
}
