//! The words of texts, and how well two texts fit.

use std::collections::BTreeSet;

/// Bytes of a text that are looked at.
const LOOKED_AT: usize = 16 << 10;

/// Words that say nothing about the subject.
const FILLER: &str = " a about again all am an and any are as at be been but by call can could did do does for from get \
     give go had has have how i if in into is it its just let me my no not now of off on one or our out please say \
     she should so some still tell than that the their them then there these they this those to too tool up us use \
     using want was we were what when where which who whose why will with would yes you your ";

/// Words for the same thing.
const ALIKE: [(&str, &str); 5] = [
    ("money", "refund"),
    ("reimburse", "refund"),
    ("package", "parcel"),
    ("cost", "price"),
    ("delivery", "parcel"),
];

/// The content words of a text in their order, each in its basic form.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut end = text.len().min(LOOKED_AT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    let split = text.split(|c: char| !c.is_alphanumeric());
    let words = split.filter(|word| word.chars().count() > 1).map(str::to_lowercase);
    words.filter(|word| !is_filler(word)).map(|word| base(&word)).collect()
}

/// The distinct content words of a text, each in its basic form.
pub(super) fn subject(text: &str) -> BTreeSet<String> {
    words(text).into_iter().collect()
}

fn is_filler(word: &str) -> bool {
    FILLER.contains(&format!(" {word} "))
}

/// The lower-case word without the endings of plurals and verbs.
fn base(word: &str) -> String {
    for (ending, replacement) in [("ies", "y"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
            && !stem.ends_with('s')
        {
            return alike(format!("{stem}{replacement}"));
        }
    }
    alike(word.to_owned())
}

fn alike(word: String) -> String {
    ALIKE.iter().find(|(other, _)| *other == word).map_or(word, |(_, same)| (*same).to_owned())
}

/// The sentences and lines of a text, without list marks and leading text in brackets.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.trim_start_matches(['-', '*', ' ']));
    let bare = lines.map(|line| match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, rest)) => rest,
        None => line,
    });
    let parts = bare.flat_map(|line| {
        let mut after_end = false;
        line.split_inclusive(move |c: char| {
            let splits = after_end && c == ' ';
            after_end = matches!(c, '.' | '!' | '?');
            splits
        })
    });
    parts.map(str::trim).filter(|part| part.chars().any(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).join(" "), expected);
    }

    #[test]
    fn content_words_have_one_form() {
        check("Where are my orders 1042 and 1043?", "order 1042 1043");
        check("find_order: Looks up an order by its number.", "find order look order number");
        check("Refunded, refunding, refunds", "refund refund refund");
        check("What is it?", "");
    }

    #[test]
    fn sentences_end_with_their_marks() {
        let text = "Notes:\n- [score 1.00] Ada likes cod. She lives in Oslo!\n\nWhy?";
        let found: Vec<&str> = sentences(text).collect();
        assert_eq!(found, ["Notes:", "Ada likes cod.", "She lives in Oslo!", "Why?"]);
    }
}
