//! The sandbox of Linux.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, PathFdError,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use super::{SYSTEM_FOLDERS, Sandbox, SandboxFault};

/// The least that the kernel must know: before it, files could be cut short that must not be written.
const LEAST: ABI = ABI::V3;

/// Devices without memory, which every program may write.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// Files that programs need to find other machines, beside those in `/etc`.
const NETWORK_FILES: [&str; 2] = ["/run/systemd/resolve", "/run/nscd"];

/// The bit by which numbers of system calls of the x32 kind differ.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

pub(super) fn available() -> Result<(), SandboxFault> {
    ruleset()?;
    filter()?;
    if Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        return Ok(());
    }
    Err(SandboxFault::new("the kernel has no seccomp filters", "they were not built into it"))
}

pub(super) fn restrict(sandbox: &Sandbox, programs: &[PathBuf]) -> Result<(), SandboxFault> {
    let mut rules = ruleset()?;
    let read = AccessFs::from_read(LEAST);
    let optional = SYSTEM_FOLDERS.iter().map(Path::new).chain(programs.iter().map(PathBuf::as_path));
    for path in optional {
        rules = allowed(rules, path, read, false)?;
    }
    if sandbox.network {
        for path in NETWORK_FILES {
            rules = allowed(rules, path.as_ref(), read, false)?;
        }
    }
    for path in DEVICES {
        rules = allowed(rules, path.as_ref(), AccessFs::ReadFile | AccessFs::WriteFile, false)?;
    }
    for path in &sandbox.read {
        rules = allowed(rules, path, read, true)?;
    }
    for path in &sandbox.write {
        rules = allowed(rules, path, AccessFs::from_all(LEAST), true)?;
    }
    let status = rules.restrict_self().map_err(no_landlock)?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(SandboxFault::new("Landlock", "the kernel does not enforce all rules"));
    }
    if !sandbox.network {
        apply_filter(&filter()?).map_err(|error| SandboxFault::new("seccomp", error))?;
    }
    drop_rights()
}

/// Takes from root what would lead past the rules: looking into other processes, mounting, loading modules. Rights
/// over files stay, within the rules.
fn drop_rights() -> Result<(), SandboxFault> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    let wrong = |error: rustix::io::Errno| SandboxFault::new("rights cannot be dropped", error);
    let mut sets = capabilities(None).map_err(wrong)?;
    sets.effective &= kept;
    sets.permitted &= kept;
    sets.inheritable &= kept;
    set_capabilities(None, sets).map_err(wrong)
}

fn no_landlock(error: landlock::RulesetError) -> SandboxFault {
    SandboxFault::new("the kernel has no Landlock of version 3 or later (Linux 6.2)", error)
}

/// Rules by which nothing is allowed.
fn ruleset() -> Result<RulesetCreated, SandboxFault> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .and_then(Ruleset::create)
        .map_err(no_landlock)
}

/// The rules, and one more. A path that does not exist is skipped, unless the host names it.
fn allowed(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    named: bool,
) -> Result<RulesetCreated, SandboxFault> {
    let opened = match PathFd::new(path) {
        Ok(opened) => opened,
        Err(PathFdError::OpenCall { source, .. }) if !named && is_absent(&source) => return Ok(rules),
        Err(error) => return Err(SandboxFault::new("a path of the sandbox cannot be opened", error)),
    };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(LEAST) };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| SandboxFault::new("Landlock", error))
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// Refuses to make sockets, also by way of `io_uring`. Socket pairs, which connect only their owner, are allowed.
fn filter() -> Result<BpfProgram, SandboxFault> {
    let wrong = |error: seccompiler::BackendError| SandboxFault::new("seccomp", error);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(wrong)?;
    let calls = [libc::SYS_socket, libc::SYS_io_uring_setup];
    #[cfg(target_arch = "x86_64")]
    let calls = calls.into_iter().flat_map(|call| [call, call | X32]);
    let rules: BTreeMap<i64, _> = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let refusal = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch).and_then(TryInto::try_into).map_err(wrong)
}
