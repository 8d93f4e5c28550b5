//! What every `Cargo.toml` has to say.

use serde::Deserialize;

use super::tree::Tree;
use crate::repo::{Package, shown};

#[derive(Deserialize)]
struct Manifest {
    lints: Option<Inherited>,
}

#[derive(Deserialize)]
struct Inherited {
    #[serde(default)]
    workspace: bool,
}

/// Where each dependency is justified.
const JUSTIFIED: &str = "docs/design/dependencies.md";

/// Crates that could be published, that do not take the workspace's lints, or that use a
/// dependency for which no reason is written.
pub(super) fn problems(packages: &[Package], tree: &Tree) -> Vec<String> {
    let justified = tree.text(JUSTIFIED).unwrap_or_default();
    let mut problems = Vec::new();
    for package in packages {
        let path = shown(&package.manifest_path);
        if package.publish.as_ref().is_none_or(|registries| !registries.is_empty()) {
            problems.push(format!("{path}: needs `publish.workspace = true`"));
        }
        if !inherits_lints(tree.text(&path).unwrap_or_default()) {
            problems.push(format!("{path}: needs `[lints] workspace = true`"));
        }
        for name in package.dependencies.iter().map(|dependency| &dependency.name) {
            let own = packages.iter().any(|p| p.name == *name);
            if !own && !justified.contains(&format!("`{name}`")) {
                problems.push(format!("{path}: `{name}` has no line in {JUSTIFIED}"));
            }
        }
    }
    problems
}

fn inherits_lints(manifest: &str) -> bool {
    let manifest: Option<Manifest> = toml::from_str(manifest).ok();
    manifest.and_then(|m| m.lints).is_some_and(|lints| lints.workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(publish: &str, manifest: &str, expected: &[&str]) {
        check_with("[]", publish, manifest, expected);
    }

    #[track_caller]
    fn check_with(dependencies: &str, publish: &str, manifest: &str, expected: &[&str]) {
        let text = format!(
            r#"{{"name":"a","features":{{}},"dependencies":{dependencies},"publish":{publish},"manifest_path":"a/Cargo.toml"}}"#
        );
        let package = serde_json::from_str(&text).unwrap();
        let tree = Tree::of(&[("a/Cargo.toml", manifest), (JUSTIFIED, "| `serde` | all |")]);
        assert_eq!(problems(&[package], &tree), expected);
    }

    const LINTS: &str = "[package]\nname = 'a'\n[lints]\nworkspace = true\n";

    #[test]
    fn publishing_has_to_be_off() {
        check("[]", LINTS, &[]);
        check("null", LINTS, &["a/Cargo.toml: needs `publish.workspace = true`"]);
        check(r#"["somewhere"]"#, LINTS, &["a/Cargo.toml: needs `publish.workspace = true`"]);
    }

    #[test]
    fn lints_have_to_be_inherited() {
        check("[]", "[package]\nname = 'a'\n", &["a/Cargo.toml: needs `[lints] workspace = true`"]);
        check("[]", "[lints.rust]\nunused = 'warn'\n", &["a/Cargo.toml: needs `[lints] workspace = true`"]);
    }

    #[test]
    fn dependencies_have_to_be_justified() {
        check_with(r#"[{"name":"serde","kind":null},{"name":"a","kind":"dev"}]"#, "[]", LINTS, &[]);
        check_with(
            r#"[{"name":"left-pad","kind":"dev"}]"#,
            "[]",
            LINTS,
            &["a/Cargo.toml: `left-pad` has no line in docs/design/dependencies.md"],
        );
    }
}
