//! Records for people.

use harness_core::message::{Block, Message};
use harness_record::{render_html, render_text};

use super::*;

/// A run in which nearly everything happens that a page shows.
pub(super) fn eventful() -> RunRecord {
    let thinking = {
        let mut answer = AssistantMessage::calls([
            call("c1", "look", r#"{"order":1042,"fields":["status","price"]}"#),
            call("c2", "drop", r#"{"table":"orders"}"#),
        ]);
        answer.content.insert(0, Block::thinking("I should look at the order first."));
        answer.content.insert(1, Block::text("Let me look at that order."));
        ModelStep::answer(answer.with_usage(Usage::tokens(812, 64))).taking(Millis(840))
    };
    let mut scene = Scene::new(
        [
            thinking,
            asks([call("c3", "to_expert", r#"{"why":"refund"}"#)]),
            asks([call("c4", "pay", r#"{"order":1042,"amount":12.50}"#)]),
            says("Your refund of €12.50 for order 1042 is on its way, and you will get a mail about it."),
        ],
        [
            ToolOutcome::structured(json(
                r#"{"order":1042,"status":"delayed","price":{"amount":12.50,"currency":"EUR"}}"#,
            )),
            ToolOutcome::error("card_expired", "the card on file has expired; a voucher was sent instead"),
        ],
    );
    scene.policy = true;
    scene.options.prompt_text = true;
    scene.options.candidate.package_version = Some("harness 0.1.0".to_owned());
    scene.options.limits = Some(json(r#"{"iterations":32,"toolCalls":128}"#));
    scene.context = Some(json(r#"{"customer":{"name":"Ada","tier":"gold"},"locale":"en"}"#));
    scene.prompt = Some(Message::user("My order 1042 is late. Can I have my money back?"));
    scene.history = vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    scene.run().record
}

#[test]
fn the_text_tells_the_story() {
    insta::assert_snapshot!(render_text(&eventful()), @r#"
    run run-1 · 2026-01-01T00:00:00.000Z · 960 ms
    4 model calls · 3 tool calls · 1132 + 83 tokens
    descriptor sha256:d · candidate efbe2f5384bf
    goes on with a conversation of 2 messages

    user: My order 1042 is late. Can I have my money back?

    1. desk asks small · 840 ms · 812 + 64 tokens
       instructions: You are the desk.
       Let me look at that order.
       → look {"order":1042,"fields":["status","price"]}
         policy: allow (harmless)
       ← success in 5 ms: {"order":1042,"status":"delayed","price":{"amount":12.50,"currency":"EUR"}}
       → drop {"table":"orders"}
         policy: deny (too_dangerous)
       ← failed, never ran: Not here.

    2. desk asks small · 40 ms · 100 + 7 tokens
       instructions: You are the desk.
       → to_expert {"why":"refund"}
         desk hands over to expert
       ← success in 0 ms: {"handoffTo":"expert","accepted":true,"payload":{"why":"refund"}}

    3. expert asks large · 40 ms · 100 + 7 tokens
       instructions: You are the expert.
       → pay {"order":1042,"amount":12.50}
       ← failed in 5 ms: the card on file has expired; a voucher was sent instead

    4. expert asks large · 30 ms · 120 + 5 tokens
       instructions: You are the expert.
       Your refund of €12.50 for order 1042 is on its way, and you will get a mail about it.

    ended: completed (answer_finalized)

    Your refund of €12.50 for order 1042 is on its way, and you will get a mail about it.
    "#);
}

#[test]
fn the_page_is_whole_in_itself_and_says_what_happened() {
    let page = render_html(&eventful());
    for said in [
        "My order 1042 is late. Can I have my money back?",
        "I should look at the order first.",
        "policy: deny · too_dangerous",
        "desk hands over to expert",
        "card_expired",
        "12.50",
        "completed (answer_finalized)",
        "You are the expert.",
        "sha256:d",
    ] {
        assert!(page.contains(said), "{said} is not on the page");
    }
    for outside in
        ["<script", "<img", "<link", "<iframe", "http://", "https://", "url(", "@import", "onerror", " src="]
    {
        assert!(!page.contains(outside), "{outside} is on the page");
    }
    assert!(page.contains("default-src 'none'"));
}

const HOSTILE: &str =
    "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\"'&lt;";

#[test]
fn hostile_content_is_text_and_nothing_else() {
    let named = |name: &str| {
        let arguments = Json::of(&[HOSTILE]).unwrap();
        ToolCall::new(HOSTILE, name, json(&format!(r#"{{"{}":{arguments}}}"#, "k<b>")))
    };
    let mut scene = Scene::new(
        [asks([named(HOSTILE), named("look")]), says(HOSTILE)],
        [ToolOutcome::structured(Json::string(HOSTILE)), ToolOutcome::error(HOSTILE, HOSTILE)],
    );
    scene.prompt = Some(Message::user(HOSTILE));
    scene.context = Some(Json::string(HOSTILE));
    scene.options.metadata = Some(Json::string(HOSTILE));
    scene.options.candidate.provider = Some(HOSTILE.to_owned());
    scene.options.candidate.policy_version = Some(HOSTILE.to_owned());
    let mut record = scene.run().record;
    record.run_id = HOSTILE.to_owned();
    let mut usual = eventful();
    usual.metadata = Some(Json::string("harmless"));
    let known = tags(&render_html(&usual));
    let page = render_html(&record);
    let found: Vec<String> = tags(&page).into_iter().filter(|tag| !known.contains(tag)).collect();
    assert!(found.is_empty(), "{found:?}");
    for hidden in ['\u{202e}', '\u{1b}'] {
        assert!(!page.contains(hidden) && !render_text(&record).contains(hidden));
    }
    assert_eq!(page.matches("</style>").count(), 1);
}

/// The distinct tags of a page; what stands between `<` and `>`, times and places left out.
fn tags(page: &str) -> Vec<String> {
    let body = page.split_once("<body>").unwrap().1;
    let mut tags: Vec<String> = body
        .split('<')
        .skip(1)
        .map(|part| part.split('>').next().unwrap())
        .map(|tag| if tag.starts_with("i style=\"left:") { "i" } else { tag }.to_owned())
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

#[test]
fn a_record_without_its_messages_can_be_shown() {
    let mut record = eventful();
    record.items.clear();
    let text = render_text(&record);
    assert!(text.contains("→ look (not in the record) success"), "{text}");
    assert!(render_html(&record).contains("not in the record"));
}
