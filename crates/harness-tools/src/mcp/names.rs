//! Names of the tools of a server for the model.
//!
//! `NAMESPACE__TOOL`, of at most 64 letters, digits, `_` and `-`. A namespace never holds `__`, so the
//! first `__` of a name ends it, and no two servers can claim one name.

use crate::registry::{MAX_NAME, is_name_char, name_of};

/// Between the namespace and the tool's own name.
const BETWEEN: &str = "__";

/// How long a namespace may be, so that most of a tool's own name fits behind it.
const MAX_NAMESPACE: usize = 24;

/// Hexadecimal digits of the mark of a shortened name.
const MARK: usize = 8;

/// The beginning of every name of a server's tools, made from the server's id.
pub(crate) fn namespace(id: &str) -> String {
    let safe = name_of(id);
    if safe.len() <= MAX_NAMESPACE {
        return safe + BETWEEN;
    }
    let kept: String = safe.chars().take(MAX_NAMESPACE - MARK - 1).collect();
    format!("{}_{:08x}{BETWEEN}", kept.trim_end_matches('_'), mark(id))
}

/// The name of a server's tool: its own behind the namespace, where providers take that, and otherwise
/// what is left of it and a mark made from the whole.
pub(crate) fn tool_name(namespace: &str, tool: &str) -> String {
    let room = MAX_NAME.saturating_sub(namespace.len());
    if !tool.is_empty() && tool.len() <= room && tool.chars().all(is_name_char) {
        return format!("{namespace}{tool}");
    }
    let kept: String = name_of(tool).chars().take(room.saturating_sub(MARK + 1)).collect();
    format!("{namespace}{}_{:08x}", kept.trim_end_matches('_'), mark(tool))
}

/// FNV-1a, folded: equal on every machine and in every version.
fn mark(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(id: &str, tool: &str, expected: &str) {
        let name = tool_name(&namespace(id), tool);
        assert_eq!(name, expected);
        assert!(name.len() <= MAX_NAME && name.chars().all(is_name_char), "{name}");
    }

    #[test]
    fn a_name_that_providers_take_is_kept() {
        check("files", "read_file", "files__read_file");
        check("a-b", "get-sum", "a-b__get-sum");
        check("git__hub.api", "__x", "git_hub_api____x");
    }

    #[test]
    fn any_other_is_shortened_and_marked() {
        check("files", "read.file", "files__read_file_2affaff5");
        check("files", "read/file", "files__read_file_4723f4b0");
        check("files", "", "files__tool_4fd0bfc1");
        check("dateien-und-ordner-auf-dem-server", "lies", "dateien-und-ord_2b1699bb__lies");
        let long = "x".repeat(80);
        check("files", &long, &format!("files__{}_1879e320", "x".repeat(48)));
    }
}
