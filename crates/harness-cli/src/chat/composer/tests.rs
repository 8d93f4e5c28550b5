use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

use super::*;

/// Commands, and a folder.
struct Known;

impl Complete for Known {
    fn candidates(&self, word: Word<'_>) -> Vec<String> {
        let all: &[&str] = match word {
            Word::Command(_) => &["/model", "/mode", "/help"],
            Word::Argument { command: "/model", .. } => &["small", "large"],
            Word::Argument { .. } => &[],
            Word::Path(_) => &["src/main.rs", "src/mod.rs", "docs/"],
        };
        all.iter().map(|&one| one.to_owned()).collect()
    }
}

fn composer(history: &[&str]) -> Composer {
    Composer::new(history.iter().map(|&entry| entry.to_owned()).collect(), Box::new(Known))
}

/// The keys of a script: characters are typed, names stand between `<` and `>`, with `C-`, `A-` or `S-` before them.
fn keys(script: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let Some((name, behind)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) else {
            keys.push(Key::of(Code::Char(c)));
            rest = &rest[c.len_utf8()..];
            continue;
        };
        rest = behind;
        let (held, name) = name.split_once('-').unwrap_or(("", name));
        let code = match name {
            "Enter" => Code::Enter,
            "Tab" => Code::Tab,
            "BackTab" => Code::BackTab,
            "Backspace" => Code::Backspace,
            "Delete" => Code::Delete,
            "Left" => Code::Left,
            "Right" => Code::Right,
            "Up" => Code::Up,
            "Down" => Code::Down,
            "Home" => Code::Home,
            "End" => Code::End,
            "Esc" => Code::Esc,
            other => Code::Char(other.chars().next().expect("a key has a name")),
        };
        keys.push(Key { code, ctrl: held == "C", alt: held == "A", shift: held == "S" });
    }
    keys
}

fn press(composer: &mut Composer, script: &str) -> Edit {
    keys(script).into_iter().map(|key| composer.key(key)).last().unwrap_or(Edit::None)
}

/// The text with a bar for the cursor.
fn shown(composer: &Composer) -> String {
    format!("{}|{}", composer.buffer.before(), composer.buffer.after())
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let mut composer = composer(&["first", "second\nline", "Third"]);
    press(&mut composer, script);
    assert_eq!(shown(&composer), expected);
}

#[test]
fn characters_are_typed_and_removed() {
    check("abc<Left>x", "abx|c");
    check("abc<Backspace>", "ab|");
    check("abc<Home><Delete>", "|bc");
    check("abc<C-a>x<C-e>y<C-b><C-b><C-f>z", "xabcz|y");
    check("abc<C-h><C-a><C-d>", "|b");
}

#[test]
fn the_cursor_passes_what_a_person_sees_as_one_character() {
    check("a👩‍👩‍👧b<Left><Left>x", "ax|👩‍👩‍👧b");
    check("ae\u{301}<Backspace>", "a|");
    check("e<Home>a<End>\u{301}", "ae\u{301}|");
    check("\u{301}<Home>e", "e\u{301}|");
}

#[test]
fn words_are_passed_and_cut() {
    check("one two.three<C-Left>x", "one two.x|three");
    check("one two.three<A-b><A-b>x", "one x|two.three");
    check("one two<Home><C-Right>x", "onex| two");
    check("one two.three<C-w>", "one |");
    check("one two  <C-w>", "one |");
    check("one two.three<A-Backspace>", "one two.|");
    check("one two<Home><A-d>", "| two");
    check("one two<C-w><Home><C-y>", "two|one ");
    check("one two<Left><Left><Left><C-u>", "|two");
    check("one two<Home><A-f><C-k><C-y><C-y>", "one two two|");
}

#[test]
fn text_has_lines() {
    check("a<A-Enter>b<C-j>c<S-Enter>d", "a\nb\nc\nd|");
    check("a\\<Enter>b", "a\nb|");
    check("one<C-j>two<Up>x", "onex|\ntwo");
    check("one<C-j>t<C-j>three<Up><Up>x", "onex|\nt\nthree");
    check("世界<C-j>abc<Left><Up>x", "世x|界\nabc");
    check("a<C-j>b<Home><C-k><Up><C-k>", "|\n");
    check("a<C-j>b<Up><C-k>", "a|b");
    check("ab<C-j>cd<C-Home>x<C-End>y", "xab\ncdy|");
}

#[test]
fn the_column_is_kept_over_short_lines() {
    check("one<C-j>t<C-j>three<C-Home><End><Down><Down>x", "one\nt\nthrx|ee");
}

#[test]
fn enter_sends() {
    let mut composer = composer(&[]);
    assert_eq!(press(&mut composer, "a b<Enter>"), Edit::Submit("a b".to_owned()));
    assert_eq!(shown(&composer), "|");
    assert_eq!(press(&mut composer, "<Enter>"), Edit::None);
    assert_eq!(press(&mut composer, "  <Enter>"), Edit::None);
    press(&mut composer, "<C-u><Up>");
    assert_eq!(shown(&composer), "a b|");
}

#[test]
fn keys_without_a_meaning_are_the_callers() {
    let mut composer = composer(&[]);
    for script in ["<Esc>", "<C-c>", "<C-d>", "<C-l>", "<Left>", "<Down>", "<C-_>", "<Tab>", "<BackTab>"] {
        assert_eq!(press(&mut composer, script), Edit::None, "{script}");
    }
}

#[test]
fn the_history_keeps_the_draft_and_changes() {
    check("draft<Up>", "Third|");
    check("draft<Up><Up>", "second\nline|");
    check("draft<Up><Up><Up>", "seco|nd\nline");
    check("draft<Up><Up><Up><Up><Up>", "first|");
    check("draft<Up><Up><Down><Down>", "draft|");
    check("draft<Up>!<Up><Down>", "Third!|");
    check("draft<Up><Up>!<Down>", "Third|");
    check("draft<Up><Up>!<Down><Up>", "second\nline!|");
}

#[test]
fn the_history_is_searched() {
    check("draft<C-r>f", "draft|");
    check("draft<C-r>f<Enter>", "first|");
    check("draft<C-r>f<Esc>", "draft|");
    check("draft<C-r>ir<C-r><Enter>", "first|");
    check("draft<C-r>ir<C-r><C-r><C-r><Enter>", "first|");
    check("draft<C-r>T<Enter>", "Third|");
    check("draft<C-r>nope<Enter>", "second\nline|");
    check("draft<C-r>f<Home>x", "x|first");
    let mut composer = composer(&["first"]);
    press(&mut composer, "<C-r>fi");
    let view = composer.view(40, (5, 8), 0);
    assert_eq!((view.rows[0].plain(), view.below[0].plain()), ("first".to_owned(), "history: fi".to_owned()));
    press(&mut composer, "x");
    assert_eq!(composer.view(40, (5, 8), 0).below[0].plain(), "history, not found: fix");
    press(&mut composer, "<Esc><C-r>f<Enter><C-_>");
    assert_eq!(shown(&composer), "|");
}

#[test]
fn tab_completes() {
    check("/h<Tab>", "/help |");
    check("/m<Tab>", "/mode|");
    check("/m<Tab><Tab><Tab>", "/mode|");
    check("/m<Tab><Tab>", "/model|");
    check("/m<Tab><BackTab>", "/mode|");
    check("/m<Tab><Tab> x", "/model x|");
    check("/model s<Tab>", "/model small |");
    check("/help s<Tab>", "/help s|");
    check("see d<Tab>", "see docs/|");
    check("see s<Tab>", "see src/m|");
    check("see s<Tab><Tab><Tab>", "see src/mod.rs|");
    check("see s<Tab><C-_><C-_>", "see|");
    check("<Tab>", "|");
    let mut composer = composer(&[]);
    press(&mut composer, "/m<Tab><Tab>");
    assert_eq!(composer.view(40, (5, 8), 0).below[0].plain(), "[/model] /mode ");
    assert_eq!(press(&mut composer, "<Esc>"), Edit::Changed);
    assert_eq!(composer.view(40, (5, 8), 0).below, []);
}

#[test]
fn undo_takes_back_words() {
    check("one two<C-_>", "one|");
    check("one two<C-_><C-_>", "|");
    check("one two<C-w><C-_>", "one two|");
    check("one<Up><C-_>", "one|");
}

#[test]
fn pastes_stay_as_they_are_up_to_a_bound() {
    let paste = |composer: &mut Composer, text: &str| composer.key(Key::of(Code::Paste(text.to_owned())));
    let mut composer = composer(&[]);
    assert_eq!(paste(&mut composer, "a\r\n\tb\rc\u{1b}[31m\u{9b}\u{0}"), Edit::Changed);
    assert_eq!(composer.text(), "a\n\tb\nc[31m");
    press(&mut composer, "<C-_>");
    assert_eq!(composer.text(), "");
    assert_eq!(paste(&mut composer, &"é".repeat(buffer::LONGEST / 2 + 5)), Edit::Cut { bytes: 10 });
    assert_eq!(composer.text().len(), buffer::LONGEST);
    assert_eq!(press(&mut composer, "x"), Edit::Cut { bytes: 1 });
    assert_eq!(composer.set_text("new"), Edit::Changed);
    assert_eq!(shown(&composer), "new|");
}

#[test]
fn the_history_is_bounded() {
    let entries: Vec<String> = (0..1_500).map(|number| format!("entry {number}")).collect();
    let composer = Composer::new(entries, Box::new(NoCandidates));
    assert_eq!((composer.history.len(), composer.history.entry(0)), (1_000, Some("entry 500")));
}

#[track_caller]
fn check_view(script: &str, columns: usize, most_rows: usize, expected: &[&str], cursor: (usize, usize)) {
    let mut composer = composer(&[]);
    press(&mut composer, script);
    let view = composer.view(columns, (most_rows, 8), 0);
    assert_eq!(view.rows.iter().map(Line::plain).collect::<Vec<_>>(), expected);
    assert_eq!(view.cursor, cursor);
}

#[test]
fn long_lines_are_broken_into_rows() {
    check_view("", 10, 5, &[""], (0, 0));
    check_view("abcdefgh", 4, 5, &["abcd", "efgh", ""], (2, 0));
    check_view("abcdefgh<Left>", 4, 5, &["abcd", "efgh"], (1, 3));
    check_view("abc世界", 4, 5, &["abc", "世界", ""], (2, 0));
    check_view("ab<C-j>c<Up>", 4, 5, &["ab", "c"], (0, 1));
}

#[test]
fn the_rows_around_the_cursor_are_shown() {
    check_view("1<C-j>2<C-j>3<C-j>4<C-j>5", 9, 3, &["3", "4", "5"], (2, 1));
    check_view("1<C-j>2<C-j>3<C-j>4<C-j>5<Up><Up>", 9, 3, &["2", "3", "4"], (1, 1));
    check_view("1<C-j>2<C-j>3<C-j>4<C-j>5<C-Home>", 9, 3, &["1", "2", "3"], (0, 0));
    check_view("1<C-j>2", 9, 0, &["2"], (0, 1));
}

fn any_key() -> impl Strategy<Value = Key> {
    let text = "[a-c /\\\\.世e\u{301}\u{200d}👩🇩\u{202e}\u{ad}\t\n\r\u{1b}]{0,6}";
    let code = prop_oneof![
        6 => prop::char::any().prop_map(Code::Char),
        6 => prop::sample::select("abc /\\e\u{301}\u{200d}👩🇩世ᄀ".chars().collect::<Vec<_>>()).prop_map(Code::Char),
        4 => prop::sample::select("abcdefghijknpruwy_<>".chars().collect::<Vec<_>>()).prop_map(Code::Char),
        2 => text.prop_map(Code::Paste),
        6 => prop::sample::select(vec![
            Code::Enter, Code::Tab, Code::BackTab, Code::Backspace, Code::Delete, Code::Left, Code::Right, Code::Up,
            Code::Down, Code::Home, Code::End, Code::PageUp, Code::PageDown, Code::Esc,
        ]),
    ];
    (code, prop::bool::weighted(0.3), prop::bool::weighted(0.2), prop::bool::weighted(0.1))
        .prop_map(|(code, ctrl, alt, shift)| Key { code, ctrl, alt, shift })
}

fn is_boundary(text: &str, at: usize) -> bool {
    at == text.len() || text.grapheme_indices(true).any(|(start, _)| start == at)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_key_leaves_a_legal_editor(
        keys in proptest::collection::vec(any_key(), 0..60),
        columns in 0_usize..30,
        most_rows in 0_usize..6,
    ) {
        let mut composer = composer(&["first", "second\nline", "e\u{301}"]);
        for key in keys {
            composer.key(key.clone());
            prop_assert!(is_boundary(composer.text(), composer.buffer.cursor()), "{key:?}: {:?}", shown(&composer));
            prop_assert!(!composer.text().chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
            let view = composer.view(columns, (most_rows, 8), 0);
            prop_assert!((1..=most_rows.max(1)).contains(&view.rows.len()));
            prop_assert!(view.cursor.0 < view.rows.len() && view.cursor.1 < columns.max(2), "{view:?}");
            for row in &view.rows {
                prop_assert!(row.width() <= columns.max(2), "{row:?} is wider than {columns}");
            }
        }
    }

    #[test]
    fn undo_goes_back_to_the_beginning(keys in proptest::collection::vec(any_key(), 0..60)) {
        let mut composer = composer(&["first", "second\nline"]);
        // A key that ends a search may change what was found at once.
        let found = ["", "first", "second\nline"].map(str::to_owned);
        let mut seen = found.to_vec();
        for key in keys {
            if let Edit::Submit(_) = composer.key(key) {
                seen = found.to_vec();
            }
            seen.push(composer.text().to_owned());
        }
        press(&mut composer, "<Esc>");
        composer.search = None;
        composer.completion = None;
        while press(&mut composer, "<C-_>") != Edit::None {
            prop_assert!(seen.iter().any(|text| text == composer.text()), "{:?}", composer.text());
        }
        prop_assert_eq!(composer.text(), "");
    }
}

/// Choices of a menu.
struct Choices;

impl Complete for Choices {
    fn candidates(&self, _: Word<'_>) -> Vec<String> {
        Vec::new()
    }

    fn menu(&self, word: Word<'_>) -> Vec<Item> {
        let items: &[(&str, bool)] = match word {
            Word::Command(typed) if typed.starts_with('/') => &[("/cost", true), ("/save", false)],
            Word::Path(typed) if typed.starts_with('@') => &[("@a.rs", false), ("@src/", false)],
            Word::Command(_) | Word::Argument { .. } | Word::Path(_) => &[],
        };
        let item = |&(text, is_sent): &(&str, bool)| Item {
            text: text.to_owned(),
            note: "does".to_owned(),
            is_sent,
        };
        items.iter().map(item).collect()
    }
}

#[track_caller]
fn check_menu(script: &str, expected: &str, rows: &[&str]) {
    let mut composer = Composer::new(vec!["earlier".to_owned()], Box::new(Choices));
    press(&mut composer, script);
    assert_eq!(shown(&composer), expected);
    let below: Vec<String> = composer.view(20, (4, 8), 0).below.iter().map(Line::plain).collect();
    assert_eq!(below, rows);
}

#[test]
fn menu_opens_while_a_command_or_a_file_is_typed() {
    check_menu("/", "/|", &["  /cost  does", "  /save  does"]);
    check_menu("/<Down><Down>", "/|", &["  /cost  does", "› /save  does"]);
    check_menu("see @", "see @|", &["  @a.rs  does", "  @src/  does"]);
    check_menu("a / b", "a / b|", &[]);
}

#[test]
fn chosen_word_replaces_the_typed_one() {
    check_menu("/<Tab>", "/cost |", &[]);
    check_menu("/<Up><Tab>x", "/save x|", &[]);
    check_menu("see @s<Down><Enter>", "see @a.rs |", &[]);
    check_menu("@s<Up><Enter>", "@src/|", &["  @a.rs  does", "  @src/  does"]);
}

#[test]
fn enter_sends_a_chosen_command_without_arguments_and_what_is_typed_without_a_choice() {
    let mut composer = Composer::new(Vec::new(), Box::new(Choices));
    assert_eq!(press(&mut composer, "/<Down><Enter>"), Edit::Submit("/cost".to_owned()));
    assert_eq!(press(&mut composer, "/sa<Enter>"), Edit::Submit("/sa".to_owned()));
}

#[test]
fn closed_menu_stays_closed_for_the_word_and_other_keys_work_as_ever() {
    check_menu("/<Esc>c", "/c|", &[]);
    check_menu("/<Esc><Up>", "earlier|", &[]);
    check_menu("@<Esc>x @", "@x @|", &["  @a.rs  does", "  @src/  does"]);
    check_menu("/c<Left>", "/|c", &[]);
}
