//! Path and link rules of reference sections 3 and 4, on a real file system.

use std::fs;
use std::path::{Path, PathBuf};

use harness_descriptor::{DescriptorError, FileSource, PromptMap, TextSource, Value, load_file};
use tempfile::TempDir;

struct Folder {
    _guard: TempDir,
    path: PathBuf,
}

/// A folder with these files; a text that starts with `->` makes a link.
fn folder(files: &[(&str, &str)]) -> Folder {
    let guard = tempfile::tempdir().unwrap();
    let path = guard.path().canonicalize().unwrap();
    for (name, text) in files {
        let file = path.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(target) => std::os::unix::fs::symlink(target, file).unwrap(),
            None => fs::write(file, text).unwrap(),
        }
    }
    Folder { _guard: guard, path }
}

fn yaml(prompt: &str) -> String {
    format!("runtime: {{ entry_agent: a }}\nagents:\n  a:\n    model: m\n    instructions_file: {prompt}\n")
}

fn instructions(loaded: Result<harness_descriptor::Descriptor, DescriptorError>, root: &Path) -> String {
    match loaded {
        Ok(descriptor) => {
            let value = descriptor.to_value();
            let agent = value.get("agents").and_then(|agents| agents.get("a"));
            agent.and_then(|agent| agent.get("instructions")).unwrap_or(&Value::Null).to_string()
        }
        Err(error) => error.to_string().replace(root.to_str().unwrap(), "ROOT"),
    }
}

#[track_caller]
fn check(prompt: &str, files: &[(&str, &str)], expected: &str) {
    let folder = folder(files);
    fs::write(folder.path.join("d.yaml"), yaml(prompt)).unwrap();
    assert_eq!(instructions(load_file(folder.path.join("d.yaml")), &folder.path), expected);
}

#[test]
fn prompts_are_read_as_they_are() {
    check("p.md", &[("p.md", "text\r\n")], r#""text\r\n""#);
    check("./sub/../p.md", &[("p.md", "")], r#""""#);
    check("..p.md", &[("..p.md", "dots")], r#""dots""#);
    check("\" p.md\"", &[(" p.md", "blank")], r#""blank""#);
}

#[test]
fn forms_of_paths_are_refused_in_order() {
    let at = "ROOT/d.yaml:5:24: agents.a.instructions_file";
    check("''", &[], &format!("{at} must be a non-empty string"));
    check("\"a\\0b\"", &[], &format!("{at} `a\0b` must not hold a NUL character"));
    check("https://x/*", &[], &format!("{at} `https://x/*` must not be a URL"));
    check("/etc/passwd", &[], &format!("{at} `/etc/passwd` must not be an absolute path"));
    check("'*.md'", &[], &format!("{at} `*.md` must not hold any of * ? [ ] {{ }}"));
    check("../p.md", &[], &format!("{at} `../p.md` is outside the root directory `ROOT`"));
    check(".", &[], &format!("{at} `.` is outside the root directory `ROOT`"));
}

#[test]
fn missing_files_name_what_asked_for_them() {
    let at = "ROOT/d.yaml:5:24: cannot read";
    let wanted = "for agents.a.instructions_file:";
    check("gone.md", &[], &format!("{at} `ROOT/gone.md` {wanted} No such file or directory (os error 2)"));
    check("sub", &[("sub/x", "")], &format!("{at} `ROOT/sub` {wanted} is a directory"));
    check("x/y", &[("x", "")], &format!("{at} `ROOT/x/y` {wanted} Not a directory (os error 20)"));
}

#[test]
fn links_are_followed_inside_the_root_only() {
    check("link.md", &[("real.md", "real"), ("link.md", "->real.md")], r#""real""#);
    check(
        "in/link.md",
        &[("in/link.md", "->../../outside.md")],
        "ROOT/d.yaml:5:24: cannot read `ROOT/in/link.md` for agents.a.instructions_file: \
         No such file or directory (os error 2)",
    );
    check(
        "link.md",
        &[("link.md", "->/etc/hostname")],
        "ROOT/d.yaml:5:24: prompt file `link.md` of agents.a is a link outside the root directory `ROOT`",
    );
    check(
        "loop.md",
        &[("loop.md", "->loop.md")],
        "ROOT/d.yaml:5:24: cannot read `ROOT/loop.md` for agents.a.instructions_file: \
         Too many levels of symbolic links (os error 40)",
    );
}

#[test]
fn the_descriptor_itself_stays_inside_the_root() {
    let made = folder(&[("cfg/d.yaml", &yaml("../p.md")), ("p.md", "up"), ("in/d.yaml", "->../cfg/d.yaml")]);
    let load =
        |path: &str, root: &str| FileSource::new(made.path.join(path)).root(made.path.join(root)).load();
    assert_eq!(instructions(load("cfg/d.yaml", "."), &made.path), r#""up""#);
    let outside = instructions(load("cfg/d.yaml", "in"), &made.path);
    assert_eq!(outside, "the descriptor path `ROOT/cfg/d.yaml` is outside the root directory `ROOT/in`");
    let linked = instructions(load("in/d.yaml", "in"), &made.path);
    assert_eq!(linked, "the descriptor path `ROOT/in/d.yaml` is outside the root directory `ROOT/in`");
    assert_eq!(load_file(" ").unwrap_err().to_string(), "the descriptor path must be a non-empty string");
}

#[track_caller]
fn check_map(prompt: &str, map: &str, expected: &str) {
    let map: Value = serde_json::from_str(map).unwrap();
    let source = TextSource::new(yaml(prompt)).path("/v/d.yaml").prompt_map(PromptMap::from_value(&map));
    assert_eq!(instructions(source.load(), Path::new("/nowhere")), expected);
}

#[test]
fn prompt_maps() {
    check_map("./p.md", r#"{"q/../p.md":"one"}"#, r#""one""#);
    check_map("p.md", r#"{"p.md":"one","/v/p.md":"two"}"#, r#""two""#);
    check_map(
        "p.md",
        r#"{"../p.md":"x"}"#,
        "prompt map key `../p.md` `../p.md` is outside the root directory `/v`",
    );
    check_map("p.md", r#"{"p.md":5}"#, "prompt map entry `p.md` must be a string");
    check_map("p.md", "{}", "/v/d.yaml:5:24: no text for `p.md` of agents.a in the prompt map");
    let none = TextSource::new(yaml("p.md")).path("/v/d.yaml").load().unwrap_err();
    assert_eq!(none.kind(), "descriptor.prompt_map_required");
}

/// A descriptor whose agents `a0`, `a1`, … have one of these prompts each.
fn agents<'a>(prompts: impl IntoIterator<Item = &'a str>) -> String {
    let agents = prompts.into_iter().enumerate();
    let agents = agents.map(|(at, prompt)| format!("  a{at}: {{ instructions_file: {prompt} }}\n"));
    format!("agents:\n{}", agents.collect::<String>())
}

#[test]
fn many_prompts_are_read_side_by_side_and_each_once() {
    let names: Vec<String> = (0..200).map(|at| format!("p{}.md", at % 120)).collect();
    let texts: Vec<String> = (0..120).map(|at| format!("text {at}")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = folder(&files);
    let yaml = agents(names.iter().map(String::as_str));
    fs::write(folder.path.join("d.yaml"), &yaml).unwrap();
    let loaded = load_file(folder.path.join("d.yaml")).unwrap();
    let text = harness_descriptor::TextSource::new(yaml).prompts(files).load().unwrap();
    assert_eq!(loaded.canonical_text(), text.canonical_text());
}

#[test]
fn the_first_fault_of_many_prompts_is_reported() {
    let names: Vec<String> = (0..200).map(|at| format!("p{at}.md")).collect();
    let folder = folder(&[]);
    for name in names.iter().filter(|name| !["p77.md", "p150.md", "p199.md"].contains(&name.as_str())) {
        fs::write(folder.path.join(name), "x").unwrap();
    }
    fs::write(folder.path.join("d.yaml"), agents(names.iter().map(String::as_str))).unwrap();
    let error = load_file(folder.path.join("d.yaml")).unwrap_err();
    assert_eq!(error.kind(), "descriptor.io");
    assert_eq!(error.place().map(|place| (place.line, place.column)), Some((79, 29)));
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let folder = folder(&[("sub/x", "")]);
    let pipe = folder.path.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for (prompt, expected) in [("pipe", "not a regular file"), ("sub", "is a directory")] {
        fs::write(folder.path.join("d.yaml"), yaml(prompt)).unwrap();
        let error = load_file(folder.path.join("d.yaml")).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn prompts_that_are_no_utf8_are_warned_of() {
    let folder = folder(&[]);
    fs::write(folder.path.join("p.md"), b"a\xffb").unwrap();
    fs::write(folder.path.join("d.yaml"), yaml("p.md")).unwrap();
    let descriptor = load_file(folder.path.join("d.yaml")).unwrap();
    assert!(descriptor.canonical_text().contains("a\u{fffd}b"));
    let warnings = descriptor.warnings();
    let shown: Vec<_> = warnings.iter().map(|it| format!("{} {}", it.place.line, it.kind)).collect();
    assert_eq!(shown, ["5 bytes here are not UTF-8 and are hashed as U+FFFD"]);
    fs::write(folder.path.join("d.yaml"), b"\xef\xbb\xbfa: 1\nb: x\xc3 # c\n").unwrap();
    let warnings = load_file(folder.path.join("d.yaml")).unwrap().warnings();
    assert_eq!(warnings.iter().map(|it| (it.place.line, it.place.column)).collect::<Vec<_>>(), [(2, 5)]);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn files_are_read_without_blocking_the_runtime() {
    let folder = folder(&[("p.md", "text")]);
    fs::write(folder.path.join("d.yaml"), yaml("p.md")).unwrap();
    let loaded = FileSource::new(folder.path.join("d.yaml")).load_async().await;
    assert_eq!(instructions(loaded, &folder.path), r#""text""#);
    let missing = FileSource::new(folder.path.join("none.yaml")).load_async().await;
    assert_eq!(missing.unwrap_err().kind(), "descriptor.io");
}
