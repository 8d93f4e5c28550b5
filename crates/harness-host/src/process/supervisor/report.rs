//! Reports of a supervisor: one letter and a number.

use rustix::io::Errno;

/// The length of a report.
pub(super) const LENGTH: usize = 5;

/// Request to the supervisor: send SIGTERM.
pub(super) const ASK: u8 = b'T';

/// Request to the supervisor: send SIGKILL.
pub(super) const KILL: u8 = b'K';

/// The first byte to a supervisor: the program's stdin is empty.
pub(super) const NO_STDIN: u8 = b'0';

/// The first byte to a supervisor: the program's stdin comes with it.
pub(super) const STDIN: u8 = b'1';

/// Report of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The program was started and has this number.
    Started(i32),
    /// It was not started, for this reason.
    Failed(Errno),
    /// It was not started, for a reason in so many bytes that follow.
    Refused(i32),
    /// It has exited with this status, as the operating system gives it.
    Exited(i32),
}

impl Report {
    pub(super) fn to_bytes(self) -> [u8; LENGTH] {
        let (letter, number) = match self {
            Self::Started(number) => (b'S', number),
            Self::Failed(errno) => (b'F', errno.raw_os_error()),
            Self::Refused(length) => (b'R', length),
            Self::Exited(status) => (b'E', status),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [letter, a, b, c, d]
    }

    pub(super) fn of_bytes([letter, a, b, c, d]: [u8; LENGTH]) -> Option<Self> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match letter {
            b'S' => Some(Self::Started(number)),
            b'F' => Some(Self::Failed(Errno::from_raw_os_error(number))),
            b'R' => Some(Self::Refused(number)),
            b'E' => Some(Self::Exited(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        for report in
            [Report::Started(42), Report::Failed(Errno::NOENT), Report::Exited(0x0f00), Report::Exited(9)]
        {
            assert_eq!(Report::of_bytes(report.to_bytes()), Some(report));
        }
        assert_eq!(Report::of_bytes(*b"x0000"), None);
    }
}
