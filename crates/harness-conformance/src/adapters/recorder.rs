//! A stand-in for a program that notes how it was started.

use std::path::{Path, PathBuf};

use harness_host::process::Environment;
use serde_json::{Value, json};

use crate::Done;

/// Directory in which a shell script records its input.
pub(super) struct Recorder(PathBuf);

impl Recorder {
    pub(super) fn new(folder: &Path) -> Done<Self> {
        let notes = folder.join("notes");
        std::fs::create_dir(&notes).map_err(|e| e.to_string())?;
        Ok(Self(notes))
    }

    /// Arguments of `sh`, before those of the program.
    pub(super) fn leading(&self) -> [String; 3] {
        let script = r#"cd "$0" && printf '%s\0' "$@" >argv && printf %s "$OLDPWD" >cwd && env -0 >env && exec 3>streams
            for n in 0 1 2; do
                if [ -p /dev/fd/$n ] || [ -S /dev/fd/$n ]; then echo pipe >&3; else echo ignore >&3; fi
            done
            cat >stdin; echo done"#;
        ["-c".to_owned(), script.to_owned(), self.0.display().to_string()]
    }

    fn read(&self, name: &str) -> Done<String> {
        std::fs::read_to_string(self.0.join(name)).map_err(|e| format!("{name}: {e}"))
    }

    /// Arguments of the call.
    pub(super) fn arguments(&self) -> Done<Vec<String>> {
        Ok(entries(&self.read("argv")?).map(str::to_owned).collect())
    }

    /// Working directory.
    pub(super) fn cwd(&self) -> Done<PathBuf> {
        self.read("cwd").map(PathBuf::from)
    }

    /// Whether it has all variables of this process.
    pub(super) fn inherits(&self) -> Done<bool> {
        let has = self.read("env")?;
        let own_to_a_shell = ["_", "OLDPWD", "PWD", "SHLVL"];
        Ok(Environment::of_process().iter().all(|(name, value)| {
            let entry = format!("{}={}", name.to_string_lossy(), value.to_string_lossy());
            entries(&has).any(|held| held == entry) || own_to_a_shell.iter().any(|own| name == *own)
        }))
    }

    /// Standard input, output and error, as the source names them.
    pub(super) fn streams(&self) -> Done<Vec<String>> {
        Ok(self.read("streams")?.lines().map(str::to_owned).collect())
    }

    /// Standard input up to its end; null without any.
    pub(super) fn stdin(&self) -> Done<Value> {
        let is_given = self.streams()?.first().is_some_and(|stream| stream == "pipe");
        let text = self.read("stdin")?;
        Ok(if is_given { json!({ "text": text, "closed": true }) } else { Value::Null })
    }
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split_terminator('\0')
}
