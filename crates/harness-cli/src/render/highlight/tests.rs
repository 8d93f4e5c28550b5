#![cfg(feature = "highlight")]

use super::*;

/// A line with its styles as marks: `m[fn] *[main]()`.
fn marked(parts: &[(&str, Style)]) -> String {
    let mark = |(text, style): &(&str, Style)| {
        let ansi = style.to_string();
        let mark = match ansi.trim_start_matches("\u{1b}[").trim_end_matches('m') {
            "" => return (*text).to_owned(),
            "1" => "bold",
            "2" => "dim",
            "31" => "red",
            "32" => "green",
            "34" => "blue",
            "35" => "magenta",
            "36" => "cyan",
            other => other,
        };
        format!("{mark}[{text}]")
    };
    parts.iter().map(mark).collect()
}

#[track_caller]
fn check(language: &str, text: &str, expected: &str) {
    let mut highlighter = Highlighter::of_language(language).unwrap();
    let lines: Vec<String> = text.lines().map(|line| marked(&highlighter.line(line))).collect();
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn parts_of_a_language_have_colors() {
    check(
        "rust",
        "/* a\nb */ fn main() { let x = \"y\\n\"; }",
        "dim[/* a]\ndim[b */] magenta[fn] bold[main]() { magenta[let] x = green[\"y]cyan[\\n]green[\"]; }",
    );
    check(
        "python",
        "def f(a=1):  # why\n    return f'{a}b'",
        "magenta[def] bold[f](a=cyan[1]):  dim[# why]\n    magenta[return] magenta[f]green[']{a}green[b']",
    );
    check("json", "{\"a\": [1, \"b\", null]}", "{blue[\"a\"]: [cyan[1], green[\"b\"], cyan[null]]}");
    check("yaml", "a: b # c\n\"d\": 1", "blue[a]: green[b] dim[# c]\ngreen[\"d\"]: cyan[1]");
    check("toml", "[a]\nb = \"c\"", "[bold[a]]\nblue[b] = green[\"c\"]");
    check(
        "sh",
        "if [ -f \"$a\" ]; then echo 'b'; fi",
        "magenta[if] [ -f green[\"$a\"] ]; magenta[then] echo green['b']; magenta[fi]",
    );
    check("ts", "const a: number = `b${c}`;", "magenta[const] a: number = green[`b${c}`];");
    check("html", "<a href=\"b\">c</a>", "<blue[a] cyan[href]=green[\"b\"]>c</blue[a]>");
    check("diff", "@@ -1 +1 @@\n-a\n+b\n c", "cyan[@@ -1 +1 @@]\nred[-a]\ngreen[+b]\n c");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn languages_have_the_names_that_models_write() {
    for name in [
        "rust",
        "rs",
        "python",
        "py",
        "javascript",
        "js",
        "typescript",
        "ts",
        "tsx",
        "jsx",
        "json",
        "jsonc",
        "yaml",
        "yml",
        "toml",
        "bash",
        "sh",
        "shell",
        "zsh",
        "console",
        "c",
        "cpp",
        "c++",
        "csharp",
        "java",
        "kotlin",
        "swift",
        "go",
        "golang",
        "ruby",
        "php",
        "sql",
        "html",
        "css",
        "scss",
        "xml",
        "markdown",
        "md",
        "diff",
        "dockerfile",
        "makefile",
        "lua",
        "perl",
        "r",
        "scala",
        "haskell",
        "elixir",
        "nix",
        "zig",
        "terraform",
        "hcl",
        "graphql",
        "protobuf",
        "proto",
        "ini",
        "vue",
        "svelte",
        "cmake",
        "Rust",
    ] {
        assert!(Highlighter::of_language(name).is_some(), "{name}");
    }
    for name in ["", "text", "plain", "txt", "output", "mermaid"] {
        assert!(Highlighter::of_language(name).is_none(), "{name}");
    }
}

#[test]
fn files_have_the_language_of_their_name() {
    for path in ["src/main.rs", "/a/Makefile", "Dockerfile", "Cargo.lock", "a.b.ts", ".bashrc"] {
        assert!(Highlighter::of_path(path).is_some(), "{path}");
    }
    for path in ["", "README", "notes.txt", "src.rs/data"] {
        assert!(Highlighter::of_path(path).is_none(), "{path}");
    }
}

#[test]
fn parts_are_the_line_and_stop_at_the_limits() {
    let mut highlighter = Highlighter::of_language("rust").unwrap();
    for line in ["", "fn é() {", "\u{fffd}\"世界", "// 👩‍👩‍👧 ", "\t\tlet"] {
        let parts = highlighter.line(line);
        assert_eq!(parts.iter().map(|(text, _)| *text).collect::<String>(), line);
    }
    let long = format!("let a = \"{}\";", "x".repeat(LONGEST_LINE));
    assert_eq!(marked(&highlighter.line(&long)), long);
    assert_eq!(marked(&highlighter.line("let a;")), "let a;");
}
