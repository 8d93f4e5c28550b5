mod laws;
mod sample;

use std::fmt::Write as _;

use super::{Line, MarkdownStream, Styling};

/// The lines of a text that comes at once.
fn lines(text: &str, width: usize, styling: Styling) -> Vec<Line> {
    let mut stream = MarkdownStream::new(width, styling);
    let mut lines = stream.push(text);
    lines.extend(stream.finish());
    lines
}

fn plain(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::plain).collect()
}

#[track_caller]
fn check(text: &str, width: usize, expected: &[&str]) {
    assert_eq!(plain(&lines(text, width, Styling::Colour)), expected);
}

#[track_caller]
fn check_plain(text: &str, width: usize, expected: &[&str]) {
    assert_eq!(plain(&lines(text, width, Styling::Plain)), expected);
}

#[test]
fn paragraphs_are_wrapped_by_words() {
    check("one two three four five six", 20, &["one two three four", "five six"]);
    check("one\ntwo  \nthree\\\nfour", 20, &["one two", "three", "four"]);
    check("one\n\n\n\ntwo", 20, &["one", "", "two"]);
    check("a<br>b", 20, &["a", "b"]);
}

#[test]
fn without_styles_marks_say_what_styles_would() {
    check_plain("## A *b* **c** ~~d~~ `e`", 40, &["## A *b* **c** ~~d~~ `e`"]);
    check("## A *b* **c** ~~d~~ `e`", 40, &["A b c d e"]);
    check_plain("> a\n\n- b\n  - c", 40, &["> a", "", "- b", "  - c"]);
    check_plain("```rust\nx\n```", 40, &["```rust", "x", "```"]);
}

#[test]
fn links_say_where_they_lead() {
    check("[a](https://a.example/x)", 60, &["a (https://a.example/x)"]);
    check("<https://a.example>", 60, &["https://a.example"]);
    check("<me@a.example>", 60, &["me@a.example"]);
    check("![a](b.png)", 60, &["[image: a] (b.png)"]);
    check(
        "[a]: https://a.example\n\nSee [a] and [A][].",
        60,
        &["See a (https://a.example) and A (https://a.example)."],
    );
    let line = &lines("[a](https://a.example)", 60, Styling::Colour)[0];
    assert!(line.to_ansi().contains("\u{1b}]8;;https://a.example\u{1b}\\"), "{:?}", line.to_ansi());
    let line = &lines("[a](https://a.example)", 60, Styling::Plain)[0];
    assert_eq!(line.to_ansi(), "a (https://a.example)");
}

#[test]
fn lists_are_nested_and_numbered() {
    check("- a\n- b\n  - c\n    - d\n", 40, &["• a", "• b", "  ◦ c", "    ▪ d"]);
    check("3. a\n3. b\n3. c", 40, &["3. a", "4. b", "5. c"]);
    check("- a\n\n- b\n- c", 40, &["• a", "", "• b", "• c"]);
    check("- a\n\n  b\n", 40, &["• a", "", "  b"]);
    check("- [ ] a\n- [x] b", 40, &["• [ ] a", "• [✓] b"]);
    check("- a\n* b\n", 40, &["• a", "", "• b"]);
    check("1. one two three four\n", 20, &["1. one two three", "   four"]);
    check("-\n- a", 20, &["•", "• a"]);
    check("Text\n- a\n- b\n\nText", 20, &["Text", "", "• a", "• b", "", "Text"]);
    check("1. a\n\n   ```\n   x\n   ```\n2. b", 20, &["1. a", "", "     x", "2. b"]);
}

#[test]
fn quotes_have_a_bar() {
    check("> a\n> b\n>\n> - c\n\nd", 20, &["│ a b", "│", "│ • c", "", "d"]);
    check("> > a\n", 20, &["│ │ a"]);
    check("> one two three four five", 20, &["│ one two three four", "│ five"]);
}

#[test]
fn code_stays_as_it_is() {
    check(
        "```rust\nfn a() {\n\tb();\n}\n\n```\nx",
        40,
        &["  rust", "  fn a() {", "      b();", "  }", "", "", "x"],
    );
    check("~~~\n```\n~~~", 40, &["  ```"]);
    check("```\n0123456789 0123456789\n```", 20, &["  0123456789 0123456", "↪ 789"]);
    check("    a\n\n      b\nc", 20, &["  a", "", "    b", "", "c"]);
    check("```a\nb", 20, &["  a", "  b"]);
    check("  ```\n   a\n  ```", 20, &["   a"]);
}

/// A line as a terminal gets it.
fn ansi(line: &Line) -> String {
    line.to_ansi().replace('\u{1b}', "⎋")
}

#[cfg(feature = "highlight")]
#[test]
fn code_of_a_known_language_has_colors() {
    let check = |text: &str, expected: &str| {
        let lines = lines(text, 40, Styling::Colour);
        assert_eq!(lines.last().map(ansi).as_deref(), Some(expected), "{text}");
    };
    check("```rust\nfn\ta()", "  ⎋[35mfn⎋[0m  ⎋[1ma⎋[0m()");
    check("- a\n  ```rust\n  fn a()\n  ```", "    ⎋[35mfn⎋[0m ⎋[1ma⎋[0m()");
    check("```unknown\nfn a()", "  ⎋[36mfn a()⎋[0m");
    let plain = lines("```rust\nfn a()", 40, Styling::Plain);
    assert_eq!(ansi(&plain[1]), "fn a()");
}

#[cfg(feature = "highlight")]
#[test]
fn code_that_arrives_is_highlighted_once() {
    let code = "let a = \"b\"; // c\n".repeat(200);
    let mut stream = MarkdownStream::new(80, Styling::Colour);
    stream.push("```rust\n");
    for piece in code.as_bytes().chunks(3) {
        stream.push(std::str::from_utf8(piece).unwrap());
        assert!(stream.partial().iter().skip(1).all(Line::is_empty), "only the open line may change");
    }
    assert_eq!(stream.highlighted(), code.len());
    stream.push("let");
    assert_eq!(ansi(&stream.partial()[0]), "  ⎋[35mlet⎋[0m");
    assert_eq!(stream.highlighted(), code.len());
}

#[test]
fn rules_and_headings_stand_alone() {
    check("a\n***\nb\n# c\nd", 20, &["a", "", &"─".repeat(20), "", "b", "", "c", "", "d"]);
    check("a\n===\nb\n---\n", 20, &["a", "", "b"]);
}

#[test]
fn tables_fit_the_width() {
    check(
        "| a | b |\n|---|--:|\n| 1 | 22 |\n| 世界 | 3 |\n",
        40,
        &["a    │  b", "─────┼───", "1    │ 22", "世界 │  3"],
    );
    check(
        "|a|b|\n|-|-|\n|one two three four|five six seven eight|\n|1|2|",
        25,
        &[
            "a           │ b",
            "────────────┼────────────",
            "one two     │ five six",
            "three four  │ seven eight",
            "────────────┼────────────",
            "1           │ 2",
        ],
    );
    check(
        "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|one|two|three|four|five|six|\n",
        20,
        &["a: one", "b: two", "c: three", "d: four", "e: five", "f: six"],
    );
}

#[test]
fn html_is_shown_as_it_is() {
    check("<div>\na\n</div>\n\nb <i>c</i>", 40, &["<div>", "a", "</div>", "", "b <i>c</i>"]);
    check("<!-- a\n\n# b -->\nc", 40, &["<!-- a", "", "# b -->", "", "c"]);
}

#[test]
fn control_characters_never_come_out() {
    check("a\u{1b}[2Jb&#27;[31m\r\nc\rd", 60, &["a\u{fffd}[2Jb\u{fffd}[31m c d"]);
    check("```\n\u{1b}]0;x\u{7}\n```", 60, &["  \u{fffd}]0;x\u{fffd}"]);
    let ansi = lines("[a](https://a.example/\u{1b}\\x)", 60, Styling::Colour)[0].to_ansi();
    assert!(!ansi.contains("\u{1b}]8"), "{ansi:?}");
}

#[test]
fn lines_are_final_as_soon_as_that_is_sure() {
    let mut stream = MarkdownStream::new(40, Styling::Colour);
    let mut told = Vec::new();
    let pieces = ["one", "\n", "\n", "- a\n", "- b", "\n", "\n```x\n", "y\n", "z", "\n```\n", "# h\n", "end"];
    for piece in pieces {
        told.push(plain(&stream.push(piece)).join("/"));
    }
    assert_eq!(told, ["", "", "one", "", "", "/• a", "• b//  x", "  y", "", "  z", "/h", ""]);
    assert_eq!(plain(&stream.partial()), ["", "end"]);
}

#[test]
fn what_is_not_decided_yet_does_not_flicker() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut stream = MarkdownStream::new(40, Styling::Colour);
        stream.push(text);
        assert_eq!(plain(&stream.partial()), expected);
        assert_eq!(stream.partial(), stream.partial());
    }
    check("a\n-", &["a"]);
    check("a\n--", &["a"]);
    check("a\n- b", &["a", "", "• b"]);
    check("```\na\n``", &[]);
    check("a **b", &["a **b"]);
}

#[test]
fn another_width_holds_for_what_is_not_final() {
    let mut stream = MarkdownStream::new(40, Styling::Colour);
    stream.push("one two three four five six");
    stream.set_width(20);
    assert_eq!(plain(&stream.partial()), ["one two three four", "five six"]);
    stream.set_width(3);
    assert_eq!(plain(&stream.finish()), ["one two", "three four", "five six"]);
}

#[test]
fn long_tables_and_items_are_shown_in_parts() {
    let mut text = "| name | value |\n|---|---|\n".to_owned();
    for number in 0..2_000 {
        let _ = writeln!(text, "| row {number} | {number} |");
    }
    let shown = plain(&lines(&text, 40, Styling::Colour));
    assert_eq!(shown.len(), 2_002);
    assert_eq!(shown.iter().filter(|line| line.contains("name")).count(), 1);

    let item = format!("3. a\n{}", "   word\n".repeat(4_000));
    let shown = plain(&lines(&item, 40, Styling::Colour));
    assert!(shown.iter().all(|line| line.starts_with("   word") || line.starts_with("3. ")), "{shown:?}");
    assert_eq!(shown.concat().matches("word").count(), 4_000);
}

#[test]
fn long_lines_are_shown_in_parts() {
    let text = "word ".repeat(10_000);
    let shown = plain(&lines(&text, 80, Styling::Colour));
    assert_eq!(shown.join(" ").split_whitespace().count(), 10_000);
    assert!(shown.iter().all(|line| !line.is_empty()));
    let code = format!("```\n{}\n```", "x".repeat(20_000));
    let shown = plain(&lines(&code, 80, Styling::Colour));
    assert_eq!(shown.concat().matches('x').count(), 20_000);
    assert_eq!(shown.iter().filter(|line| !line.starts_with("↪ ")).count(), 1);
}
