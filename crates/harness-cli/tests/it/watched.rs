//! The program under watch: it must end in time, without a panic, and within a bound of memory.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::corpus::PLANTED;
use crate::support::{raw_controls, terminal};

/// Looks at a process that may be taken, one every [`PAUSE`]: a minute, where ten seconds are expected.
const LOOKS: u32 = 12_000;
const PAUSE: Duration = Duration::from_millis(5);

/// Kilobytes of memory that a process may use at most.
const MOST_MEMORY: u64 = 300 * 1024;

/// Runs a command with both of its outputs on a terminal, and checks what it showed.
#[track_caller]
pub(crate) fn watch(mut command: Command, case: &str) {
    let (ours, theirs) = terminal();
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs).env("TERM", "xterm").env("NO_COLOR", "1");
    for key in ["OPENROUTER_API_KEY", "HARNESS_API_KEY"] {
        command.env(key, PLANTED);
    }
    let what = format!("{case}: {:?}", command.get_args().collect::<Vec<_>>());
    let mut child = command.spawn().unwrap();
    // The program's side must be closed here.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    drop(command);
    let (sender, shown) = channel();
    thread::spawn(move || sender.send(read(ours)));
    let status = end_of(&mut child, &what);
    let shown =
        shown.recv_timeout(PAUSE * LOOKS).unwrap_or_else(|_| panic!("{what}: the terminal stays open"));
    assert!(status.code().is_some_and(|code| code != 101), "{what}: {status}: {shown}");
    check_shown(&shown, &what);
}

/// What is shown holds no panic, no control sequence and no key.
#[track_caller]
pub(crate) fn check_shown(shown: &str, what: &str) {
    let start: String = shown.chars().take(2_000).collect();
    assert!(!shown.contains("panicked at"), "{what}: {start:?}");
    assert!(!shown.contains("planted0123456789"), "{what}: the key is shown: {start:?}");
    let controls: String = raw_controls(&shown.replace("\r\u{1b}[2K", "\n")).chars().take(50).collect();
    assert_eq!(controls, "", "{what}: {start:?}");
}

/// Waits for the end of a process and watches its memory meanwhile.
#[track_caller]
fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    for _ in 0..LOOKS {
        check_memory(child.id(), what);
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        thread::sleep(PAUSE);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("{what} hangs");
}

/// The peak of a process's memory so far, where the system tells it.
#[track_caller]
pub(crate) fn check_memory(process: u32, what: &str) {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak: u64 = peak.map_or(0, |peak| peak.trim().parse().unwrap());
    assert!(peak <= MOST_MEMORY, "{what} used {} MB of memory", peak >> 10);
}

fn read(mut ours: File) -> String {
    let (mut shown, mut buffer) = (Vec::new(), vec![0; 65_536]);
    // Reading fails when the program's side is closed.
    while let Ok(read @ 1..) = ours.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&shown).replace("\r\n", "\n")
}
