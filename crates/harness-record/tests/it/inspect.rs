//! Records as text and as trace pages.

use base64::Engine as _;
use harness_core::message::{Block, Message};
use harness_record::{render_comparison_html, render_html, render_runs_html, render_text};
use sha2::{Digest as _, Sha256};

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
    scene.options.candidate.package_version = Some("harness 0.1.0".to_owned());
    scene.options.limits = Some(json(r#"{"iterations":32,"toolCalls":128}"#));
    scene.context = Some(json(r#"{"customer":{"name":"Ada","tier":"gold"},"locale":"en"}"#));
    scene.prompt = Some(Message::user("My order 1042 is late. Can I have my money back?"));
    scene.history = vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    scene.run().record
}

#[test]
fn text_shows_the_run_in_order() {
    insta::assert_snapshot!(render_text(&eventful()), @r#"
    run run-1 · 2026-01-01T00:00:00.000Z · 960 ms
    4 model calls · 3 tool calls · 1132 + 83 tokens
    descriptor sha256:d · candidate efbe2f5384bf
    continues a thread of 2 messages

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
       → to_expert {"why":"refund"}
         handoff: desk → expert
       ← success in 0 ms: {"handoffTo":"expert","accepted":true,"payload":{"why":"refund"}}

    3. expert asks large · 40 ms · 100 + 7 tokens
       instructions: You are the expert.
       → pay {"order":1042,"amount":12.50}
       ← failed in 5 ms: the card on file has expired; a voucher was sent instead

    4. expert asks large · 30 ms · 120 + 5 tokens
       Your refund of €12.50 for order 1042 is on its way, and you will get a mail about it.

    ended: completed (answer_finalized)

    Your refund of €12.50 for order 1042 is on its way, and you will get a mail about it.
    "#);
}

#[test]
fn page_is_self_contained_and_shows_the_run() {
    let page = render_html(&eventful());
    for said in [
        "My order 1042 is late. Can I have my money back?",
        "I should look at the order first.",
        "policy: deny · too_dangerous",
        "handoff: desk → expert",
        "card_expired",
        "12.50",
        "completed (answer_finalized)",
        "You are the expert.",
        "sha256:d",
    ] {
        assert!(page.contains(said), "{said} is not on the page");
    }
    for outside in
        ["<img", "<link", "<iframe", "http://", "https://", "url(", "@import", "onerror", " src=", " style="]
    {
        assert!(!page.contains(outside), "{outside} is on the page");
    }
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page.matches("<script").count(), 1);
    for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
        let (start, end) = (format!("<{element}>"), format!("</{element}>"));
        let content = page.split_once(&start).unwrap().1.split_once(&end).unwrap().0;
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(content));
        assert!(
            page.contains(&format!("{directive} 'sha256-{hash}';")),
            "the policy allows exactly its {element}"
        );
    }
}

/// The rows of the waterfall: kind, label, place, and the numbers.
fn rows(page: &str) -> String {
    let row = |row: &str| {
        let kind = row.split('"').next().unwrap();
        let bar = row.split_once("<rect").unwrap().1;
        let attribute = |name| bar.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap();
        let place = format!("{} for {}", attribute("x"), attribute("width"));
        let text: Vec<&str> = row.split('>').filter_map(|part| part.split('<').next()).collect();
        let text: Vec<_> = text.into_iter().skip(1).filter(|part| !part.trim().is_empty()).collect();
        format!("{kind}: {} at {place}", text.join(" | "))
    };
    let rows = page.split("<a class=\"span ").skip(1).map(|rest| row(rest.split("</a>").next().unwrap()));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn parallel_calls_overlap_in_the_waterfall() {
    insta::assert_snapshot!(rows(&render_html(&usual().run().record)), @r"
    model: desk · small | 40 ms | 100 + 7 tokens at 0.0% for 33.3%
    tool: look | 5 ms at 33.3% for 4.1%
    tool: look | 10 ms at 33.3% for 8.3%
    model: desk · small | 40 ms | 100 + 7 tokens at 41.6% for 33.3%
    tool: to_expert | 0 ms at 75.0% for 0.1%
    model: expert · large | 30 ms | 120 + 5 tokens at 75.0% for 25.0%
    ");
}

#[test]
fn wait_for_an_approval_is_a_span_of_its_call() {
    let mut value: serde_json::Value =
        serde_json::from_str(usual().run().record.to_json().unwrap().text()).unwrap();
    let entry = |seq: u64, at: &str| {
        serde_json::json!({ "seq": seq, "timestamp": at, "turn": 1, "callId": "c1", "gate": "pay", "verdict": "hold",
            "decision": "granted", "facts": { "limit": 100 } })
    };
    value["gateDecisions"] = serde_json::json!([entry(1, "2026-01-01T00:00:00.040Z")]);
    value["approvals"] = serde_json::json!([entry(2, "2026-01-01T00:00:00.100Z")]);
    let page = render_html(&RunRecord::from_text("r.json", &value.to_string()).unwrap());
    assert!(rows(&page).contains("wait: approval: granted | 60 ms at 33.3% for 50.0%"), "{}", rows(&page));
    assert!(page.contains("waiting for approval 60 ms"));
    assert!(page.contains("Facts of pay: hold") && page.contains("&quot;limit&quot;: 100"));
}

#[test]
fn every_link_has_a_target() {
    let (usual, eventful) = (usual().run().record, eventful());
    check_links(&render_html(&eventful));
    check_links(&render_comparison_html(&eventful, &usual));
    check_links(&render_runs_html(&[eventful, usual], None));
}

#[track_caller]
fn check_links(page: &str) {
    let parts = |mark: &str| -> Vec<String> {
        page.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let (links, ids) = (parts("href=\"#"), parts(" id=\""));
    assert!(links.len() > 10);
    let dead: Vec<_> = links.iter().filter(|link| !ids.contains(link)).collect();
    assert!(dead.is_empty(), "{dead:?}");
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "ids are unique");
}

const HOSTILE: &str = "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\"'&lt;]]>\
     [x](javascript:alert(1))![x](data:text/html,x)";

#[test]
fn hostile_content_stays_text() {
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
    for page in [
        page,
        render_comparison_html(&record, &record),
        render_runs_html(&[record.clone()], Some("<b>note</b>")),
    ] {
        for hidden in ['\u{202e}', '\u{1b}'] {
            assert!(!page.contains(hidden) && !render_text(&record).contains(hidden));
        }
        assert_eq!((page.matches("</style>").count(), page.matches("</script>").count()), (1, 1));
        assert_eq!((page.matches("<img").count(), page.matches("href=\"javascript").count()), (0, 0));
    }
}

/// The distinct tags of a page, without its script and with numbers as `0`.
fn tags(page: &str) -> Vec<String> {
    let body = page.split_once("<body>").unwrap().1.split("<script>").next().unwrap();
    let number = |tag: &str| {
        let mut out: String = tag.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        while out.contains("00") {
            out = out.replace("00", "0");
        }
        out
    };
    let mut tags: Vec<String> =
        body.split('<').skip(1).map(|part| number(part.split('>').next().unwrap())).collect();
    tags.sort();
    tags.dedup();
    tags
}

#[test]
fn record_without_messages_can_be_shown() {
    let mut record = eventful();
    record.items.clear();
    let text = render_text(&record);
    assert!(text.contains("→ look (not in the record) success"), "{text}");
    assert!(render_html(&record).contains("not in the record"));
}

/// The content of each request, as text without markup.
fn requests(page: &str) -> String {
    let parts = page.split("<details class=\"request\">").skip(1);
    let text = |part: &str| {
        let words: Vec<&str> = part.split('>').filter_map(|part| part.split('<').next()).collect();
        let words: Vec<&str> = words.into_iter().map(str::trim).filter(|word| !word.is_empty()).collect();
        words.join(" | ")
    };
    let open_to_end = |part: &str| {
        let mut depth = 1_i32;
        let mut end = part.len();
        for (at, _) in part.match_indices('<') {
            if part[at..].starts_with("<details") {
                depth += 1;
            } else if part[at..].starts_with("</details>") {
                depth -= 1;
                if depth == 0 {
                    end = at;
                    break;
                }
            }
        }
        part[..end].to_owned()
    };
    parts.map(|part| text(&open_to_end(part))).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_request_shows_what_is_new_in_it() {
    let mut scene = usual();
    scene.prompt = Some(Message::user("Where is **order 7**?"));
    insta::assert_snapshot!(requests(&render_html(&scene.run().record)), @r"
    Request | · 1 message · 4 tools | Instructions | You are the desk. | Messages | · 1 | user | Where is | order 7 | ? | Tools | · 4 | look | Looks at something. | {&quot;type&quot;: &quot;object&quot;} | pay | Pays. | {} | drop | Drops it. | {} | to_expert | Knows all. | {} | Settings | {&quot;temperature&quot;: 0.5}
    Request | · 4 messages · 4 tools | Instructions: as in | request 1 | Messages | · 4 | The first message as in | request 1 | assistant | call of | look | {&quot;order&quot;: 7} | call of | look | {&quot;order&quot;: 8} | tool result | result of | look | {&quot;at&quot;: &quot;Oslo&quot;} | tool result | result of | look | there is no order 8 | Tools: as in | request 1 | Settings | {&quot;temperature&quot;: 0.5}
    Request | · 6 messages · 3 tools | Instructions | You are the expert. | Messages | · 6 | The first 4 messages as in | request 2 | assistant | call of | to_expert | {} | tool result | result of | to_expert | {&quot;handoffTo&quot;: &quot;expert&quot;, &quot;accepted&quot;: true, &quot;payload&quot;: {}} | Tools | · 3 | look | Looks at something. | {&quot;type&quot;: &quot;object&quot;} | pay | Pays. | {} | drop | Drops it. | {} | Settings | {&quot;temperature&quot;: 0.5}
    ");
}

#[test]
fn page_grows_with_the_run_and_not_with_its_square() {
    let page = |looks: usize| {
        let look = |at: usize| asks([call(&format!("c{at}"), "look", "{}")]);
        let outcomes = (0..looks).map(|_| ToolOutcome::text("x".repeat(2_000)));
        let mut scene = Scene::new((0..looks).map(look).chain([says("Done.")]), outcomes);
        scene.spec.turn.limits.iterations = 1_000;
        render_html(&scene.run().record).len()
    };
    let [few, some, many] = [10, 40, 70].map(page);
    assert!(many - some <= (some - few) * 21 / 20, "{few}, {some} and {many} bytes");
    assert!(many < 70 * 12_000, "{many} bytes");
}

#[test]
fn long_texts_of_a_page_are_cut() {
    let mut scene = Scene::new([says(&"word ".repeat(100_000))], []);
    scene.prompt = Some(Message::user("*".repeat(1_000_000)));
    let page = render_html(&scene.run().record);
    assert!(page.len() < 400_000, "{} bytes", page.len());
    assert!(page.contains("more characters"));
}

#[test]
fn two_runs_stand_side_by_side_with_their_differences() {
    let (left, mut right) = (usual().run().record, usual().run().record);
    assert!(render_comparison_html(&left, &right).contains("Same answer, tool calls"));
    right.response = Some("It is lost.".to_owned());
    let page = render_comparison_html(&left, &right);
    let table = page.split_once("<h2>Differences</h2>").unwrap().1.split("</table>").next().unwrap();
    assert!(table.contains(">response<") && table.contains("It is lost."), "{table}");
    assert!(table.contains("It is on its way."));
    assert_eq!(page.matches("story-pair\"").count(), 3, "one pair per request");
}

/// Checks the rows of a list of runs, given as `run thread start`: `# thread` for a thread, `run` for a run.
#[track_caller]
fn check_list(runs: &[&str], expected: &[&str]) {
    let usual = usual().run().record;
    let record = |run: &&str| {
        let words: Vec<&str> = run.split(' ').collect();
        let mut record = usual.clone();
        (record.run_id, record.started_at) =
            (words[0].to_owned(), format!("2026-01-0{}T00:00:00.000Z", words[2]));
        record.thread_id = (words[1] != "-").then(|| words[1].into());
        record
    };
    let page = render_runs_html(&runs.iter().map(record).collect::<Vec<_>>(), None);
    let list = page.split_once("</thead>").unwrap().1.split("</table>").next().unwrap();
    let rows = list.split("<tr").skip(1).map(|row| match row.split_once("Thread ") {
        Some((_, thread)) => format!("# {}", thread.split("<span").next().unwrap()),
        None => row.split_once("href=\"#").unwrap().1.split("top\"").next().unwrap().to_owned(),
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(rows, expected);
    for prefix in rows.iter().filter(|row| !row.starts_with('#')) {
        assert!(page.contains(&format!("<details class=\"run\" id=\"{prefix}top\"")), "{prefix}");
    }
}

#[test]
fn runs_are_listed_by_thread_and_start_under_their_ids() {
    check_list(&["b - 2", "a - 1"], &["a-", "b-"]);
    check_list(&["a - 1", "a - 2"], &["a-", "a-2-"]);
    check_list(&["c t1 4", "b t2 3", "a t1 2", "x - 1"], &["x-", "# t1", "a-", "c-", "# t2", "b-"]);
}

#[test]
fn work_and_contract_are_shown_over_time() {
    let mut value: serde_json::Value =
        serde_json::from_str(usual().run().record.to_json().unwrap().text()).unwrap();
    let entry = |seq: u64, event: serde_json::Value| serde_json::json!({ "seq": seq, "timestamp": "2026-01-01T00:00:00.040Z", "turn": 1, "event": event });
    value["controlEvents"] = serde_json::json!([
        entry(
            1,
            serde_json::json!({ "kind": "work_items_changed", "changed": ["a"], "closed": 1, "total": 3 })
        ),
        entry(
            2,
            serde_json::json!({ "kind": "stop_decided", "decision": { "code": "contract_not_satisfied",
            "stops": false, "turn": 1, "maxTurns": 5, "contractVerified": false } })
        ),
        entry(3, serde_json::json!({ "kind": "brand_new", "x": 1 })),
    ]);
    let page = render_html(&RunRecord::from_text("r.json", &value.to_string()).unwrap());
    for said in ["1 of 3 items closed", "contract not met", "the run continues", "brand_new"] {
        assert!(page.contains(said), "{said}");
    }
}
