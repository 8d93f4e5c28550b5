//! The release program as a server: the description of its routes is one that a validator takes, and requests
//! made from it find no answer that it does not describe.
//!
//! The validator and the maker of requests come from the package registry of Python. Where they cannot be had,
//! the check says so and does not fail.

use std::fs;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::Workspace;

const VALIDATOR: &str = "openapi-spec-validator==0.9.0";
const FUZZER: &str = "schemathesis==4.32.5";
const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";
const DESCRIPTION: &str = "docs/reference/openapi.json";

pub(super) fn run(program: &Program) -> Result<String> {
    let workspace = Workspace::load()?;
    let folder = workspace.target_directory.join("e2e").join("serve");
    let tools = match Tools::install(&folder) {
        Ok(tools) => tools,
        Err(fault) => return Ok(format!("skipped, because the validator cannot be had: {fault}")),
    };
    let description = xtask::repo::root().join(DESCRIPTION);
    process::run(process::command(tools.program("openapi-spec-validator")).arg(&description))?;
    let server = Server::start(program)?;
    let mut create = process::command("curl");
    create
        .args(["--silent", "--fail", "--json", r#"{"id":"ada"}"#])
        .arg(format!("{}/v1/threads", server.url));
    process::capture(create.env("NO_PROXY", "127.0.0.1"))?;
    let config = folder.join("schemathesis.toml");
    fs::write(&config, CONFIG).map_err(|e| Fault::because(config.display(), e))?;
    let url = format!("{}/openapi.json", server.url);
    let mut fuzzer = process::command(tools.program("schemathesis"));
    fuzzer.args(["run", &url]).args(ARGUMENTS).current_dir(&folder).env("NO_PROXY", "127.0.0.1");
    process::capture(&mut fuzzer)?;
    server.stop()?;
    Ok("the description is valid, and the server answers as it says".to_owned())
}

/// Requests are about a thread that is there.
const CONFIG: &str = "[parameters]\n\"path.thread\" = \"ada\"\n";

/// What is checked, and for how long. Streams never end by themselves, so they are left out; so is the end of the
/// thread.
const ARGUMENTS: &[&str] = &[
    "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
    "--exclude-path-regex=/(events|response)$",
    "--exclude-operation-id=deleteThread",
    "--phases=examples,coverage,fuzzing",
    "--max-examples=20",
    "--seed=1",
    "--request-timeout=30",
    "--no-color",
];

/// Programs of Python in a folder of their own.
struct Tools(PathBuf);

impl Tools {
    fn install(folder: &Path) -> Result<Self> {
        let (venv, installed) = (folder.join("venv"), folder.join("installed"));
        let wanted = [VALIDATOR, FUZZER].join("\n");
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(Self(venv));
        }
        fs::create_dir_all(folder).map_err(|e| Fault::because(folder.display(), e))?;
        process::run(process::command("python3").args(["-m", "venv"]).arg(&venv))?;
        let tools = Self(venv);
        let mut pip = process::command(tools.program("pip"));
        process::run(pip.args(["install", "--quiet", "--disable-pip-version-check", VALIDATOR, FUZZER]))?;
        fs::write(&installed, wanted).map_err(|e| Fault::because(installed.display(), e))?;
        Ok(tools)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }
}

/// A server of the shipped example, which the demo model answers.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Program) -> Result<Self> {
        let mut command = program.command(["serve", EXAMPLE, "--listen", "127.0.0.1:0"]);
        let (mut child, mut stdout) = process::start_reading(&mut command)?;
        let mut line = String::new();
        stdout.read_line(&mut line).map_err(|e| Fault::because("the server's address", e))?;
        if let Some(url) = line.trim().strip_prefix("listening on ") {
            return Ok(Self { url: url.to_owned(), child });
        }
        let _ = child.kill();
        Err(Fault::new(format!("the server said {line:?}")))
    }

    /// SIGTERM, and the end in order that follows.
    fn stop(mut self) -> Result<()> {
        process::run(process::command("kill").args(["-s", "TERM", &self.child.id().to_string()]))?;
        let status = self.child.wait().map_err(|e| Fault::because("waiting for the server", e))?;
        if status.success() { Ok(()) } else { Err(Fault::new(format!("the server ended badly: {status}"))) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
