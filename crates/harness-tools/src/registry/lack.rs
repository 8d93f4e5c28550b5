//! Problems of this machine that keep programs from running.

use std::path::Path;

use harness_host::process::{ProgramSpec, Sandbox, is_path};

/// Reason why programs cannot be sandboxed, with a hint.
pub(super) fn sandbox_problem(sandbox: &Sandbox) -> Option<(String, &'static str)> {
    if let Err(fault) = Sandbox::available() {
        let problem = format!("programs cannot be sandboxed on this machine: {fault}");
        return Some((problem, "run them without a sandbox: `sandbox: off`"));
    }
    let mut named = sandbox.read.iter().chain(&sandbox.write);
    let absent = named.find(|path| !path.exists())?;
    Some((format!("`{}` does not exist", absent.display()), "create it, or correct `sandbox`"))
}

/// Reason why a program cannot be started, with a hint.
pub(super) fn program_problem(spec: &ProgramSpec) -> Option<(String, &'static str)> {
    let program = Path::new(&spec.path);
    if is_path(&spec.path) {
        return if !program.is_file() {
            Some((format!("program `{}` not found", program.display()), "correct `command`"))
        } else if !executable(program) {
            let problem = format!("`{}` is not executable", program.display());
            Some((problem, "make it so with `chmod +x`"))
        } else {
            None
        };
    }
    let env = spec.environment();
    let folders = env.get("PATH").unwrap_or_default();
    let found = std::env::split_paths(folders).any(|folder| executable(&folder.join(program)));
    if found {
        return None;
    }
    let words = program.to_string_lossy();
    let hint = if words.contains(' ') {
        "there is no shell: write the program in `command`, and its arguments in `args`"
    } else {
        "install it, or write its path in `command`"
    };
    Some((format!("program `{words}` not found in PATH"), hint))
}

fn executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
