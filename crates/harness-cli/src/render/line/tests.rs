use anstyle::{Effects, Style};
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, columns: usize, expected: &[&str]) {
    let mut wrapped = Text::default();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            wrapped.break_line();
        }
        wrapped.push(line, &Look::default());
    }
    let lines: Vec<String> = wrapped.wrap(columns).iter().map(Line::plain).collect();
    assert_eq!(lines, expected);
}

#[test]
fn lines_end_between_words() {
    check("", 10, &[""]);
    check("one two three", 20, &["one two three"]);
    check("one two three", 7, &["one two", "three"]);
    check("one  two", 8, &["one  two"]);
    check("one  two", 7, &["one", "two"]);
    check("one\ntwo three", 9, &["one", "two three"]);
    check("one\n\ntwo", 9, &["one", "", "two"]);
}

#[test]
fn a_word_that_no_line_holds_is_broken() {
    check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
    check("a bcdefgh i", 4, &["a", "bcde", "fgh", "i"]);
}

#[test]
fn a_space_that_must_not_break_does_not() {
    check("ab 1\u{a0}km", 5, &["ab", "1\u{a0}km"]);
}

#[test]
fn wide_characters_take_two_columns_and_may_end_a_line() {
    check("世界世界", 5, &["世界", "世界"]);
    check("ab世界cd", 6, &["ab世界", "cd"]);
    check("👩‍👩‍👧 x", 4, &["👩‍👩‍👧 x"]);
}

#[test]
fn what_steers_a_terminal_is_replaced() {
    let mut line = Line::new();
    line.push("a\u{1b}[31mb\u{9b}c\u{202e}d\te\u{ad}f\u{0}\u{7f}", &Look::default());
    assert_eq!(line.plain(), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d ef\u{fffd}\u{fffd}");
    assert_eq!(line.to_ansi(), line.plain());
}

#[test]
fn styles_and_links_are_ended() {
    let mut line = Line::new();
    line.push("a", &Look { style: Style::new(), link: openable("https://a.example/") });
    line.push("b", &Look::of(Style::new().effects(Effects::BOLD)));
    assert_eq!(line.to_ansi(), "\u{1b}]8;;https://a.example/\u{1b}\\a\u{1b}]8;;\u{1b}\\\u{1b}[1mb\u{1b}[0m");
    assert_eq!((line.plain().as_str(), line.width()), ("ab", 2));
}

#[test]
fn only_safe_addresses_open() {
    for address in ["https://a.example/?q=%20", "http://a", "mailto:a@b.example"] {
        assert_eq!(openable(address).as_deref(), Some(address));
    }
    let long = format!("https://{}", "a".repeat(2_000));
    for address in ["file:///etc/passwd", "https://a b", "https://a\u{1b}\\", "javascript:x", "x", &long] {
        assert_eq!(openable(address), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_too_wide_and_nothing_is_lost(
        pieces in proptest::collection::vec((any::<bool>(), "(\\PC|[ a-z]|[ㄱ-ㅣ가-힣一-龥ᄀ-ᇿ]|[\u{200d}\u{fe0f}🙂☺👩])*"), 0..4),
        columns in 4_usize..40,
    ) {
        let mut text = Text::default();
        for (bold, piece) in &pieces {
            let style = if *bold { Style::new().bold() } else { Style::new() };
            text.push(piece, &Look::of(style));
        }
        let whole: String = pieces.iter().map(|(_, piece)| clean(piece)).collect();
        let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for lines in [text.wrap(columns), text.chop(columns)] {
            for line in &lines {
                prop_assert!(line.width() <= columns, "{:?} is wider than {columns}", line.plain());
            }
            let shown: String = lines.iter().map(Line::plain).collect();
            prop_assert_eq!(squeezed(&shown), squeezed(&whole));
        }
        let chopped: String = text.chop(columns).iter().map(Line::plain).collect();
        prop_assert_eq!(chopped, whole);
    }
}
