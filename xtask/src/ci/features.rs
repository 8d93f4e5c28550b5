//! Building each crate without the others, and each feature without the others.
//!
//! In a workspace build cargo unites the features of all members, so a crate may compile only
//! because a neighbor switched on what it needs. These builds find that. The gate does a sample that moves on with every
//! commit; `cargo xtask nightly` does all of them.

use std::fmt;
use std::process::Command;

use crate::fault::Result;
use crate::process;
use crate::repo::{Package, Workspace};

/// The gate does one in this many builds.
const SAMPLE: usize = 30;

/// One crate with one choice of features.
#[derive(Debug, PartialEq, Eq)]
struct Build {
    package: String,
    features: Features,
}

#[derive(Debug, PartialEq, Eq)]
enum Features {
    None,
    Default,
    Only(String),
}

/// Does every build.
pub(super) fn build_all(workspace: &Workspace) -> Result<()> {
    build(builds(workspace).iter())
}

/// Does the builds whose turn it is: after as many commits as [`SAMPLE`] says each had its turn.
pub(super) fn build_sample(workspace: &Workspace) -> Result<()> {
    let commits = process::capture(process::command("git").args(["rev-list", "--count", "HEAD"]))?;
    let turn = commits.trim().parse::<usize>().unwrap_or_default() % SAMPLE;
    println!("sample {} of {SAMPLE}", turn + 1);
    build(builds(workspace).iter().skip(turn).step_by(SAMPLE))
}

fn build<'b>(builds: impl Iterator<Item = &'b Build>) -> Result<()> {
    for build in builds {
        println!("{build}");
        process::run(&mut build.command())?;
    }
    Ok(())
}

/// All builds worth doing: without features, with each alone, with the default ones if there are any.
fn builds(workspace: &Workspace) -> Vec<Build> {
    workspace.packages.iter().flat_map(builds_of).collect()
}

fn builds_of(package: &Package) -> Vec<Build> {
    let single = package.features.keys().filter(|name| *name != "default").cloned().map(Features::Only);
    let default = package.features.get("default").is_some_and(|list| !list.is_empty());
    let choices = std::iter::once(Features::None).chain(single).chain(default.then_some(Features::Default));
    choices.map(|features| Build { package: package.name.clone(), features }).collect()
}

impl Build {
    /// The command that does it.
    fn command(&self) -> Command {
        let mut cargo = process::cargo(["clippy", "--quiet", "--no-deps", "--package", &self.package]);
        match &self.features {
            Features::Default => {}
            Features::None => drop(cargo.arg("--no-default-features")),
            Features::Only(feature) => drop(cargo.args(["--no-default-features", "--features", feature])),
        }
        cargo.args(["--", "-D", "warnings"]);
        cargo
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.features {
            Features::None => write!(f, "{}, no features", self.package),
            Features::Default => write!(f, "{}, default features", self.package),
            Features::Only(feature) => write!(f, "{}, only `{feature}`", self.package),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(features: &str, expected: &[&str]) {
        let text = format!(
            r#"{{"name":"a","features":{features},"dependencies":[],"publish":[],"manifest_path":"Cargo.toml"}}"#
        );
        let package: Package = serde_json::from_str(&text).unwrap();
        let lines: Vec<_> = builds_of(&package).iter().map(Build::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_crate_without_features_is_built_once() {
        check("{}", &["a, no features"]);
        check(r#"{"default":[]}"#, &["a, no features"]);
    }

    #[test]
    fn each_feature_is_built_alone_and_the_default_together() {
        check(
            r#"{"default":["x"],"x":[],"y":["x"]}"#,
            &["a, no features", "a, only `x`", "a, only `y`", "a, default features"],
        );
    }
}
