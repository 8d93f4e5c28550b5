//! A program and its surroundings.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use super::environment::{Environment, PASSED};

/// A program with its arguments, directory and environment: of a command tool, an MCP server, a local agent.
///
/// It is started without a shell, and sees only the variables that it is given.
///
/// ```
/// use harness_host::process::{Environment, ProgramSpec};
///
/// let surroundings = Environment::from_iter([("PATH", "/usr/bin"), ("AWS_SECRET", "s3cret")]);
/// let program = ProgramSpec::new("reviewer")
///     .args(["--format", "json"])
///     .cwd("/srv/work")
///     .pass(&surroundings, ["LANG"])
///     .env("MODE", "strict");
/// assert_eq!(format!("{:?}", program.environment()), r#"{"MODE", "PATH"}"#);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramSpec {
    /// Path, or a name that is looked up in the `PATH` of its environment.
    pub path: OsString,
    /// Arguments. Default none.
    pub args: Vec<OsString>,
    /// Working directory; `None` is that of this process.
    pub cwd: Option<PathBuf>,
    /// Variables passed on from the surroundings. Default none: not even `PATH` is inherited.
    pub passed: Environment,
    /// Variables that are set individually. Default none. They replace those passed on.
    pub env: Environment,
}

impl ProgramSpec {
    /// Creates a program without arguments and with an empty environment.
    pub fn new(path: impl Into<OsString>) -> Self {
        let (passed, env) = Default::default();
        Self { path: path.into(), args: Vec::new(), cwd: None, passed, env }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Passes on the variables of [`PASSED`] and those of `names` that `surroundings` has.
    #[must_use]
    pub fn pass<'n>(mut self, surroundings: &Environment, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.passed = surroundings.share(PASSED.into_iter().chain(names));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.set(name, value);
        self
    }

    /// Returns its whole environment.
    pub fn environment(&self) -> Environment {
        self.passed.iter().chain(self.env.iter()).collect()
    }

    /// Returns the path as text for messages.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.to_string_lossy()
    }
}
