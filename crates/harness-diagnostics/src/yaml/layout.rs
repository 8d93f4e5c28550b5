//! Rules about lines that upstream has and the parser does not.
//!
//! Each refuses a text that upstream refuses; none changes a value.

use super::fault::YamlFault;
use crate::document::Bytes;

const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// Lines of a plain scalar in a flow collection are indented deeper than the block around it.
///
/// `block` is the column of that block, if there is one.
pub(super) fn check_flow_lines(written: &str, block: Option<usize>) -> Result<(), YamlFault> {
    if !written.contains(LINE_ENDS) {
        return Ok(());
    }
    let least = block.map_or(0, |column| column + 1);
    let is_short = |line: &str| {
        let indent = line.bytes().take_while(|byte| *byte == b' ').count();
        indent < least && !line.trim_ascii().is_empty()
    };
    if written.split(LINE_ENDS).skip(1).any(is_short) {
        return syntax("a line of this value is indented too little, or a comma is missing");
    }
    Ok(())
}

/// In a block mapping a key may be left out only after `?`.
pub(super) fn check_absent_key(source: &str, at: Bytes) -> Result<(), YamlFault> {
    if is_announced(source, at) { Ok(()) } else { syntax("a key is missing before `:`") }
}

/// Requires a key of a flow mapping and its `:` on one line, unless `?` introduces the key.
pub(super) fn check_key_line(source: &str, key: Bytes, value: Bytes) -> Result<(), YamlFault> {
    let text = |from: u32, to: u32| source.get(from as usize..to as usize).unwrap_or_default();
    if !text(key.start, value.start).contains(LINE_ENDS) {
        return Ok(());
    }
    // Without a colon the value is left out, and the key may have any number of lines.
    let Some(before_colon) = text(key.end, value.start).split_once(':').map(|(before, _)| before) else {
        return Ok(());
    };
    let has_lines = before_colon.contains(LINE_ENDS) || text(key.start, key.end).contains(LINE_ENDS);
    if has_lines && !is_announced(source, key) {
        return syntax("a key of several lines needs `?` before it, or a comma is missing");
    }
    Ok(())
}

/// A block list must not end with an empty entry if an entry of an outer list follows: upstream
/// takes that one into the inner list.
pub(super) fn check_last_entry(source: &str, last: Option<Bytes>, end: Bytes) -> Result<(), YamlFault> {
    if last.is_none_or(|last| last.start != last.end) {
        return Ok(());
    }
    let mut after = source.get(end.start as usize..).unwrap_or_default();
    loop {
        after = after.trim_ascii_start();
        if !after.starts_with('#') {
            break;
        }
        after = after.get(after.find(LINE_ENDS).unwrap_or(after.len())..).unwrap_or_default();
    }
    if after.strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '\t', '\n', '\r'])) {
        return syntax("an empty entry at the end of an inner list is ambiguous here, write `null`");
    }
    Ok(())
}

/// A document must not begin with a word like `---x`: upstream takes its dashes for a marker.
pub(super) fn check_first_word(source: &str, word: Bytes) -> Result<(), YamlFault> {
    let dashes = source.get(word.start as usize..).is_some_and(|rest| rest.starts_with("---"));
    let line_start = word.start == 0
        || source.get(..word.start as usize).is_some_and(|before| before.ends_with(LINE_ENDS));
    if dashes && line_start {
        return syntax("the first word begins with `---`, put it in quotes");
    }
    Ok(())
}

/// Requires a tag on the line of its value, unless that is a string: the reference implementation
/// types the value first.
pub(super) fn check_tag_line(source: &str, value: Bytes) -> Result<(), YamlFault> {
    let before = source.get(..value.start as usize).unwrap_or_default();
    let line = before.rsplit(LINE_ENDS).next().unwrap_or_default();
    if !line.contains('!') && value.start != value.end {
        return syntax("a tag must be on the line of its value");
    }
    Ok(())
}

/// Whether `?` precedes the key, with only comments, a tag and an anchor between.
pub(super) fn is_announced(source: &str, key: Bytes) -> bool {
    let mut before = source.get(..key.start as usize).unwrap_or_default();
    loop {
        before = before.trim_ascii_end();
        if before.ends_with('?') {
            return true;
        }
        let word = before.rfind([' ', '\t', '\n', '\r']).map_or(0, |end| end + 1);
        if before.get(word..).is_some_and(|word| word.starts_with(['!', '&'])) {
            before = before.get(..word).unwrap_or_default();
            continue;
        }
        let line = before.rfind(LINE_ENDS).map_or(0, |end| end + 1);
        let comment = before.get(line..).unwrap_or_default().find('#').map(|at| line + at);
        match comment.and_then(|at| before.get(..at)) {
            Some(rest) if rest.is_empty() || rest.ends_with([' ', '\t', '\n', '\r']) => before = rest,
            _ => return false,
        }
    }
}

fn syntax(reason: &str) -> Result<(), YamlFault> {
    Err(YamlFault::Syntax(reason.to_owned()))
}
