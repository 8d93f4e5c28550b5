//! Spans of time and amounts of bytes as people write them.

use std::time::Duration;

/// `250ms`, `10s`, `2m`, `1h`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (count, unit) = split(text)?;
    let ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    count.checked_mul(ms).map(Duration::from_millis)
}

/// `512B`, `64KiB`, `1MiB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (count, unit) = split(text)?;
    let size = match unit {
        "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    count.checked_mul(size)
}

/// An amount of bytes in its largest whole unit.
pub(crate) fn shown(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes {
        bytes if bytes >= MIB && bytes % MIB == 0 => format!("{}MiB", bytes / MIB),
        bytes if bytes >= 1024 && bytes % 1024 == 0 => format!("{}KiB", bytes / 1024),
        bytes => format!("{bytes}B"),
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    Some((digits.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, ms: Option<u64>, size: Option<u64>) {
        assert_eq!(duration(text), ms.map(Duration::from_millis));
        assert_eq!(bytes(text), size);
    }

    #[test]
    fn a_unit_is_needed_and_must_be_known() {
        check("250ms", Some(250), None);
        check("10s", Some(10_000), None);
        check(" 2 m ", Some(120_000), None);
        check("1h", Some(3_600_000), None);
        check("512B", None, Some(512));
        check("64KiB", None, Some(65_536));
        check("1 MiB", None, Some(1_048_576));
        check("10", None, None);
        check("-1s", None, None);
        check("1.5s", None, None);
        check("99999999999999999999s", None, None);
        check("9999999999999999999MiB", None, None);
        check("s", None, None);
        check("", None, None);
    }
}
