//! Test files that no test program contains: they would pass for ever.

use super::tree::Tree;

/// Files directly in the folder of a test program (`tests/it`) that its `main.rs` does not declare, and files in
/// `tests` that would become test programs of their own.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    tree.files().iter().filter_map(|file| problem(&file.path, tree)).collect()
}

fn problem(path: &str, tree: &Tree) -> Option<String> {
    let (package, inside) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    if package.contains('/') {
        // A module of unit tests that is a folder.
        return None;
    }
    let Some((program, inside)) = inside.split_once('/') else {
        let is_program = inside.strip_suffix(".rs").is_some();
        return is_program.then(|| format!("{path}: belongs into tests/it, the crate's test program"));
    };
    // A folder without it is shared by programs.
    let main = tree.text(&format!("crates/{package}/tests/{program}/main.rs"))?;
    let module = inside.strip_suffix("/mod.rs").or_else(|| inside.strip_suffix(".rs"))?;
    if module == "main" || module.contains('/') {
        return None;
    }
    let declaration = format!("mod {module};");
    let declared = main.lines().any(|line| line.trim().trim_start_matches("pub ") == declaration);
    (!declared).then(|| format!("{path}: not declared in tests/{program}/main.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &[&str]) {
        let main = "//! Tests.\nmod known;\nmod folder;\n";
        assert_eq!(problems(&Tree::of(&[("crates/a/tests/it/main.rs", main), (path, "")])), expected);
    }

    #[test]
    fn declared_modules_are_fine() {
        check("crates/a/tests/it/known.rs", &[]);
        check("crates/a/tests/it/folder/mod.rs", &[]);
        check("crates/a/tests/it/folder/part.rs", &[]);
        check("crates/a/tests/it/data.json", &[]);
        check("crates/a/tests/shared/mod.rs", &[]);
        check("crates/a/src/tests.rs", &[]);
        check("crates/a/src/part/tests/laws.rs", &[]);
    }

    #[test]
    fn forgotten_files_are_named() {
        check("crates/a/tests/it/lost.rs", &["crates/a/tests/it/lost.rs: not declared in tests/it/main.rs"]);
        check(
            "crates/a/tests/other.rs",
            &["crates/a/tests/other.rs: belongs into tests/it, the crate's test program"],
        );
    }
}
