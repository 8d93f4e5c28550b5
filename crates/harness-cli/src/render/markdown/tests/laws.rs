//! What holds for every text.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

/// Lines that look like Markdown, most of the time.
fn markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        8 => "[ ]{0,5}([-*+>#]|[0-9]{1,2}[.)])? ?[a-z*_`~\\[\\]()|<!\\\\ ]{0,24}",
        3 => "[a-z]{1,8}( [a-z]{1,8}){0,12}",
        1 => "```[a-z]{0,3}|~~~|---|===|\\*\\*\\*|    x|\t- y|  z",
        1 => "(\\|[ a-z世👩]{0,9}){1,5}\\|",
        1 => "(\\|:?-{1,3}:?){1,5}\\|",
        1 => "<!--|-->|<div>|</div>|<pre>|</pre>|\\[a\\]: https://a\\.example|\\[a\\]|&#27;|&#x9b;",
        1 => "\\PC{0,20}",
        3 => Just(String::new()),
    ];
    proptest::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

/// Lines as models write them: what they begin has text.
fn answer() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => "[ ]{0,5}([-*+>]|1[.)]) [a-z]{1,8}( [a-z*_`~]{1,5}){0,3}",
        4 => "[ ]{0,6}[a-z]{1,8}( [a-z]{1,8}){0,12}",
        2 => "#{1,7} ?[a-z]{1,8}|---|===|\\*\\*\\*|\t[a-z]|- - -",
        1 => "[ ]{0,3}(```[a-z]{0,3}|~~~)",
        1 => "(\\|[ a-z世]{0,9}){1,5}\\|",
        1 => "(\\|:?-{1,3}:?){1,5}\\|",
        1 => "<!--|-->|<div>|</div>|<pre>|</pre>|\\[a\\]",
        6 => Just(String::new()),
    ];
    proptest::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => markdown(), 1 => any::<String>(), 1 => "[\\x00-\\x7f\\r\\n]{0,60}"]
}

fn any_styling() -> impl Strategy<Value = Styling> {
    prop_oneof![Just(Styling::Colour), Just(Styling::Plain)]
}

/// The text in pieces, cut near the given places.
fn pieces<'a>(text: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// What is final and what is partial after each piece; the last one is the end.
fn stages(pieces: &[&str], width: usize, styling: Styling) -> Vec<(Vec<Line>, Vec<Line>)> {
    let mut stream = MarkdownStream::new(width, styling);
    let mut last = Vec::new();
    let mut stages = Vec::new();
    for piece in pieces {
        last.extend(stream.push(piece));
        stages.push((last.clone(), stream.partial()));
    }
    last.extend(stream.finish());
    stages.push((last, Vec::new()));
    stages
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn pieces_do_not_matter_and_final_lines_stay(
        text in any_text(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        width in 12_usize..90,
        styling in any_styling(),
    ) {
        let whole = lines(&text, width, styling);
        let stages = stages(&pieces(&text, &cuts), width, styling);
        let (end, _) = stages.last().unwrap();
        prop_assert_eq!(plain(end), plain(&whole));
        prop_assert_eq!(end, &whole);
        for (now, _) in &stages {
            prop_assert!(whole.starts_with(now));
        }
    }

    #[test]
    fn lines_fit_and_hold_no_control_characters(
        text in any_text(),
        width in 12_usize..90,
        styling in any_styling(),
    ) {
        let mut stream = MarkdownStream::new(width, styling);
        let mut shown = stream.push(&text);
        shown.extend(stream.partial());
        shown.extend(stream.finish());
        for line in &shown {
            let plain = line.plain();
            prop_assert!(line.width() <= width, "{plain:?} is wider than {width}");
            prop_assert!(!plain.chars().any(char::is_control), "{plain:?}");
            let ansi = line.to_ansi();
            if styling == Styling::Plain {
                prop_assert_eq!(ansi, plain);
            } else {
                prop_assert_eq!(without_sequences(&ansi), plain);
            }
        }
    }

    #[test]
    fn blocks_end_where_the_parser_sees_an_end(text in answer()) {
        let units = units(&text);
        let is_inside = |line: usize| units.iter().any(|(first, last)| *first < line && line <= *last);
        for cut in cuts(&text) {
            let blank = text.split('\n').nth(cut).is_none_or(|line| line.trim().is_empty());
            prop_assert!(!is_inside(cut) || !blank && !is_inside(cut + 1), "cut at line {cut} of {text:?}: {units:?}");
        }
    }
}

/// The text without the sequences that a line may have: styles and links.
fn without_sequences(ansi: &str) -> String {
    let mut plain = String::new();
    let mut rest = ansi;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = match after.as_bytes().first() {
            Some(b'[') => after.find('m').map(|at| at + 1),
            Some(b']') => after.find("\u{1b}\\").map(|at| at + 2),
            _ => None,
        };
        rest = &after[end.expect("a known sequence")..];
    }
    plain + rest
}

/// The lines with which the stream ended a block: before them, or behind them.
fn cuts(text: &str) -> Vec<usize> {
    let mut stream = MarkdownStream::new(80, Styling::Plain);
    let mut cuts = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let before = stream.parsed;
        stream.push(&format!("{line}\n"));
        if stream.parsed > before {
            cuts.push(number);
        }
    }
    cuts
}

/// The first and the last line of each block at the top level, and of each item of a list there.
fn units(text: &str) -> Vec<(usize, usize)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let lines_before = |at: usize| text.as_bytes()[..at].split(|byte| *byte == b'\n').count() - 1;
    let mut depth = 0_usize;
    let mut units = Vec::new();
    let mut add = |range: std::ops::Range<usize>| {
        let used = text[range.clone()].trim_end().len();
        units.push((lines_before(range.start), lines_before(range.start + used)));
    };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let is_list = matches!(event, Event::Start(Tag::List(_)));
        let is_item = matches!(event, Event::Start(Tag::Item));
        let begins = matches!(event, Event::Start(_));
        if (begins || event == Event::Rule) && !is_list && (depth == 0 || depth == 1 && is_item) {
            add(range);
        }
        depth += usize::from(begins);
        depth -= usize::from(matches!(event, Event::End(_)));
    }
    units
}

#[test]
fn a_long_answer_is_parsed_once() {
    let part = "Some text with **strong** words, `code` and [a link](https://a.example).\n\n- item one\n- item \
                two\n  - nested\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\n> quoted\n\n";
    let endless = [
        "word ".repeat(200_000),
        "- item\n".repeat(150_000),
        "| a | b |\n".repeat(100_000),
        "x".repeat(1_000_000),
    ];
    for text in [part.repeat(1_000_000 / part.len())].iter().chain(&endless) {
        let mut stream = MarkdownStream::new(80, Styling::Colour);
        for piece in text.as_bytes().chunks(10) {
            stream.push(std::str::from_utf8(piece).unwrap());
        }
        assert!(stream.parsed <= 2 * text.len(), "{} bytes were parsed, {} came", stream.parsed, text.len());
        assert!(plain(&stream.partial()).concat().len() <= 64 * 1024);
    }
}
