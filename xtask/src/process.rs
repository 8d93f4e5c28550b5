//! Starting other programs: the only place of the chores that does.
//!
//! Every program gets an empty standard input and starts in the workspace's folder unless the
//! caller sets another one.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::fault::{Fault, Result};
use crate::repo;

/// A program that is still to be started.
#[expect(clippy::disallowed_methods, reason = "chores start programs, and only here")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repo::root()).stdin(Stdio::null());
    command
}

/// Cargo with these arguments.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = command("cargo");
    command.args(arguments);
    command
}

/// Hides the keys of the person at the terminal from a start of the product's program.
pub(crate) fn without_keys(command: &mut Command) {
    for key in ["OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HARNESS_API_KEY"] {
        command.env_remove(key);
    }
    // Nothing lies below a file, the user's key file neither.
    command.env("XDG_CONFIG_HOME", "/dev/null");
}

/// Runs to the end, output going to the terminal; a non-zero exit is a fault.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|e| not_started(command, &e))?;
    expect_success(command, status)
}

/// Like [`run`], and shows each line of standard output to `each` while passing it through.
pub(crate) fn run_watching(command: &mut Command, each: &mut dyn FnMut(&str)) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| not_started(command, &e))?;
    if let Some(output) = child.stdout.take() {
        pass_through(BufReader::new(output), each)
            .map_err(|e| Fault::because(format!("output of `{}`", line_of(command)), e))?;
    }
    let status = child.wait().map_err(|e| Fault::because(line_of(command), e))?;
    expect_success(command, status)
}

/// Runs to the end and returns standard output; standard error goes to the terminal.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| not_started(command, &e))?;
    expect_success(command, output.status)?;
    String::from_utf8(output.stdout)
        .map_err(|e| Fault::because(format!("output of `{}`", line_of(command)), e))
}

/// Runs to the end and returns standard output; none when it fails. Standard error is dropped.
pub(crate) fn try_capture(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// True when the program can be started and succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The command as one would type it, for headings and faults.
pub(crate) fn line_of(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[expect(clippy::disallowed_methods, reason = "chores are programs of their own")]
fn pass_through(mut from: impl BufRead, each: &mut dyn FnMut(&str)) -> std::io::Result<()> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        each(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(())
}

fn expect_success(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        Ok(())
    } else {
        Err(Fault::new(format!("`{}` failed: {status}", line_of(command))))
    }
}

fn not_started(command: &Command, cause: &std::io::Error) -> Fault {
    Fault::because(format!("cannot start `{}`", line_of(command)), cause)
}
