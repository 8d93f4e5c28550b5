//! A folder as a workspace: nothing leads out of it, and everything is bounded.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness_host::{Precondition, Workspace as _, WorkspaceFault};
use harness_tools::{FolderWorkspace, ToolsError};
use tempfile::TempDir;

use crate::support::block_on;

/// `outside/secret` beside `jail`, which has `a.md`, `docs/b.md` and `.git/config`.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    for folder in ["outside", "jail/docs", "jail/.git"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("outside/secret"), "the secret").unwrap();
    fs::write(root.join("jail/a.md"), "Berth 4 is free.").unwrap();
    fs::write(root.join("jail/docs/b.md"), "berth 5").unwrap();
    fs::write(root.join("jail/.git/config"), "berth 6").unwrap();
    place
}

fn jail(place: &TempDir) -> FolderWorkspace {
    FolderWorkspace::open(place.path().join("jail")).unwrap().writable()
}

fn said(fault: &WorkspaceFault) -> String {
    format!("{}: {fault}", fault.code)
}

/// What reading the path gives: the text, `(none)` or the fault.
fn read(files: &FolderWorkspace, path: &str) -> String {
    match block_on(files.read(path)) {
        Ok(Some(file)) => file.content,
        Ok(None) => "(none)".to_owned(),
        Err(fault) => said(&fault),
    }
}

fn write(files: &FolderWorkspace, path: &str, text: &str, wanted: &Precondition) -> String {
    match block_on(files.write(path, text, wanted)) {
        Ok(()) => "written".to_owned(),
        Err(fault) => said(&fault),
    }
}

/// Reads the path in the jail, and tries to write it.
#[track_caller]
fn check(path: &str, expected_read: &str, expected_write: &str) {
    let place = place();
    let files = jail(&place);
    assert_eq!(read(&files, path), expected_read);
    assert_eq!(write(&files, path, "new", &Precondition::Any), expected_write);
    assert_eq!(fs::read_to_string(place.path().join("outside/secret")).unwrap(), "the secret");
}

#[test]
fn paths_start_at_the_folder() {
    check("a.md", "Berth 4 is free.", "written");
    check("/a.md", "Berth 4 is free.", "written");
    check("//docs/./b.md/", "berth 5", "written");
    check("none/new.md", "(none)", "written");
    check("/etc/passwd", "(none)", "written");
    let folder = "wrong_kind: `/docs` cannot be used: it is a directory; list it, or name a file in it";
    check("/docs", folder, folder);
    let root = "wrong_kind: `/` is a directory; name a file in it";
    check("/", root, root);
}

#[test]
fn dots_and_nul_do_not_lead_out() {
    for path in ["../outside/secret", "/../outside/secret", "docs/../../outside/secret", "..", "a\0b"] {
        let out =
            format!("outside_workspace: `{path}` leads out of the workspace; write the path from its root");
        check(path, &out, &out);
    }
}

#[test]
fn fault_15_names_are_exact() {
    let place = place();
    let files = jail(&place);
    check(" a.md", "(none)", "written");
    assert_eq!(write(&files, " sp ", "new", &Precondition::Absent), "written");
    assert_eq!(fs::read_to_string(place.path().join("jail/ sp ")).unwrap(), "new");
    assert!(!place.path().join("jail/sp").exists());
    assert_eq!(read(&files, " sp "), "new");
    assert_eq!(read(&files, "/ sp "), "new");
    assert_eq!(read(&files, "sp"), "(none)");
    assert_eq!(write(&files, " ", "blank", &Precondition::Absent), "written");
    let listed = block_on(files.list("/", 1, 200)).unwrap();
    let paths: Vec<&str> = listed.iter().map(|entry| &*entry.path).collect();
    assert_eq!(paths, ["/ ", "/ sp ", "/.git", "/a.md", "/docs"]);
    for path in paths.into_iter().filter(|path| path.ends_with(' ')) {
        assert!(
            block_on(files.read(path)).unwrap().is_some(),
            "what is listed as `{path}` is read under that name"
        );
    }
}

#[test]
fn fault_15_paths_have_a_greatest_depth() {
    let place = place();
    let files = jail(&place);
    let deep = |names: usize| vec!["d"; names].join("/");
    assert_eq!(write(&files, &deep(64), "x", &Precondition::Absent), "written");
    assert_eq!(read(&files, &deep(64)), "x");
    for (names, kind) in [(65, Precondition::Absent), (3_000, Precondition::Any)] {
        let refused =
            format!("path_too_deep: the path has {names} names, one below the other; at most 64 are allowed");
        let path = format!("e/{}", deep(names - 1));
        assert_eq!(write(&files, &path, "x", &kind), refused);
        assert_eq!(read(&files, &path), refused);
        assert!(!place.path().join("jail/e").exists(), "nothing was made");
    }
}

#[test]
fn fault_10_what_decides_what_programs_run_is_never_written() {
    let place = place();
    let files = jail(&place);
    for path in [
        ".git/config",
        "/.git/hooks/pre-commit",
        "docs/../.git/config",
        "docs/./.GIT/config",
        ".git",
        ".Git /config",
        ".g\u{200c}it/config",
        "git~1/config",
        "docs/.git",
        ".harness/registry.yaml",
        "home/.bashrc",
        ".PROFILE",
        "sub/.envrc",
        ".zshrc",
        ".config/fish/config.fish",
        ".ssh/authorized_keys",
    ] {
        for wanted in [Precondition::Any, Precondition::Absent, Precondition::Content("berth 6".to_owned())] {
            let said = write(&files, path, "[core]\n  fsmonitor = touch /tmp/x\n", &wanted);
            assert!(
                said.starts_with("protected_path: ") || said.starts_with("outside_workspace: "),
                "{path}: {said}"
            );
        }
    }
    assert_eq!(fs::read_to_string(place.path().join("jail/.git/config")).unwrap(), "berth 6");
    assert!(!place.path().join("jail/home").exists() && !place.path().join("jail/docs/.git").exists());
    assert_eq!(
        write(&files, ".git/config", "x", &Precondition::Any),
        "protected_path: `/.git/config` is protected and cannot be written: `.git` decides what other programs run"
    );
    let harmless = [".gitignore", ".github/workflows/ci.yml", "git/config", ".config/other/x", "profile"];
    for path in harmless {
        assert_eq!(write(&files, path, "x", &Precondition::Any), "written", "{path}");
    }
    let open = jail(&place).unprotected([".git", "FISH"]);
    assert_eq!(write(&open, ".git/config", "x", &Precondition::Any), "written");
    assert_eq!(write(&open, ".config/fish/config.fish", "x", &Precondition::Any), "written");
    assert!(write(&open, ".bashrc", "x", &Precondition::Any).starts_with("protected_path"));
}

#[test]
fn fault_10_files_of_the_host_are_never_written_whatever_they_are_called() {
    let place = place();
    let root = place.path();
    let own = harness_tools::ProtectedFiles::default();
    let files = jail(&place).protecting(own.clone());
    symlink(root.join("jail"), root.join("way")).unwrap();
    own.add(root.join("way/a.md"));
    own.add(root.join("jail/docs/../docs/later.yaml"));
    fs::hard_link(root.join("jail/a.md"), root.join("jail/second.md")).unwrap();
    for path in ["a.md", "/./a.md", "A.MD", "second.md", "docs/later.yaml", "docs/Later.YAML"] {
        let said = write(&files, path, "x", &Precondition::Any);
        assert!(said.starts_with("protected_path: "), "{path}: {said}");
    }
    assert_eq!(fs::read_to_string(root.join("jail/a.md")).unwrap(), "Berth 4 is free.");
    assert!(!root.join("jail/docs/later.yaml").exists());
    assert_eq!(write(&files, "docs/b.md", "x", &Precondition::Any), "written");
}

#[test]
fn links_are_never_followed() {
    let place = place();
    let (root, files) = (place.path(), jail(&place));
    symlink(root.join("outside/secret"), root.join("jail/link")).unwrap();
    symlink(root.join("outside"), root.join("jail/folder")).unwrap();
    symlink("a.md", root.join("jail/inside")).unwrap();
    for (path, link) in [("link", "link"), ("folder/secret", "folder"), ("inside", "inside")] {
        let refused = format!(
            "outside_workspace: `{path}` goes through the symbolic link `{link}`, and links are not followed"
        );
        assert_eq!(read(&files, path), refused);
        assert_eq!(write(&files, path, "x", &Precondition::Any), refused);
    }
    assert_eq!(fs::read_to_string(root.join("outside/secret")).unwrap(), "the secret");
    let listed = block_on(files.list("/", 5, 200)).unwrap();
    let paths: Vec<String> = listed.iter().map(|e| format!("{} {}", e.path, e.kind.as_str())).collect();
    assert!(paths.contains(&"/folder unknown".to_owned()) && paths.contains(&"/link unknown".to_owned()));
    assert!(paths.iter().all(|path| !path.contains("secret")), "{paths:?}");
    assert_eq!(block_on(files.search("the secret", None, 10)).unwrap(), []);
    assert!(block_on(files.list("/folder", 1, 10)).is_err());
}

/// A folder is exchanged for a link to the outside and back, as fast as it goes, while its file is read and
/// written: nothing from outside is ever read, and nothing outside is ever written.
#[test]
fn links_that_are_swapped_in_during_a_call_do_not_lead_out() {
    let place = place();
    let (root, files) = (place.path().to_owned(), jail(&place));
    fs::write(root.join("outside/b.md"), "the secret").unwrap();
    symlink(root.join("outside"), root.join("jail/trap")).unwrap();
    let (stop, swapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let thread = {
        let (stop, swapped, jail) = (Arc::clone(&stop), Arc::clone(&swapped), root.join("jail"));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                swap(&jail.join("docs"), &jail.join("trap"), &jail.join("aside"));
                swapped.store(true, Ordering::Relaxed);
            }
        })
    };
    let mut tries = 0;
    while tries < 300 || !swapped.load(Ordering::Relaxed) {
        tries += 1;
        let seen = read(&files, "docs/b.md");
        assert!(!seen.contains("secret"), "{seen}");
        write(&files, "docs/b.md", "berth 5", &Precondition::Any);
        let hits = block_on(files.search("secret", None, 10));
        assert!(hits.is_ok_and(|hits| hits.is_empty()));
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(fs::read_to_string(root.join("outside/b.md")).unwrap(), "the secret");
    assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 2);
}

fn swap(a: &Path, b: &Path, aside: &Path) {
    // Each step may find the other's temporary state; what counts is that both names change all the time.
    let _ = fs::rename(a, aside);
    let _ = fs::rename(b, a);
    let _ = fs::rename(aside, b);
}

#[test]
fn only_regular_files_are_opened() {
    let place = place();
    let root = place.path();
    let made = std::os::unix::net::UnixListener::bind(root.join("jail/socket"));
    let _listening = made.unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("jail/pipe"), rustix::fs::Mode::from_raw_mode(0o600))
        .unwrap();
    let files = jail(&place);
    for path in ["socket", "pipe"] {
        let refused =
            format!("wrong_kind: `{path}` cannot be used: it is a device, a pipe or a socket, no file");
        assert_eq!(read(&files, path), refused);
        assert_eq!(write(&files, path, "x", &Precondition::Any), refused);
    }
    // A search neither opens nor waits for them.
    assert_eq!(block_on(files.search("berth", None, 10)).unwrap().len(), 2);
}

#[test]
fn sizes_are_bounded_and_only_text_is_read() {
    let place = place();
    fs::write(place.path().join("jail/exact"), "12345678").unwrap();
    fs::write(place.path().join("jail/over"), "123456789").unwrap();
    fs::write(place.path().join("jail/binary"), b"ab\xff").unwrap();
    let files = jail(&place).max_file(8);
    assert_eq!(read(&files, "exact"), "12345678");
    assert_eq!(read(&files, "over"), "file_too_large: `over` has 9 bytes; at most 8 are read");
    assert_eq!(read(&files, "binary"), "not_text: `binary` is not UTF-8: invalid byte at offset 2");
    let too_long = write(&files, "new", "123456789", &Precondition::Any);
    assert_eq!(too_long, "file_too_large: `new` would have 9 bytes; at most 8 are written");
}

#[test]
fn a_search_leaves_out_git_and_stops_at_its_limit() {
    let place = place();
    let files = jail(&place);
    let found = |files: &FolderWorkspace, limit| {
        let hits = block_on(files.search("berth", None, limit)).unwrap();
        hits.into_iter().map(|hit| hit.entry.path).collect::<Vec<_>>()
    };
    assert_eq!(found(&files, 10), ["/a.md", "/docs/b.md"]);
    assert_eq!(found(&files, 1), ["/a.md"]);
    assert_eq!(found(&files.clone().skipping(["docs"]), 10), ["/.git/config", "/a.md"]);
    assert_eq!(block_on(files.search("berth", Some("github"), 10)).unwrap(), []);
}

#[test]
fn a_search_skips_what_gitignore_files_exclude_if_it_is_told_so() {
    let place = tempfile::tempdir().unwrap();
    let files = [
        (".gitignore", "*.log\n/made/\nnotes/*\n!notes/kept.md\n\\\n"),
        ("a.log", ""),
        ("a.md", ""),
        ("made/b.md", ""),
        ("notes/c.md", ""),
        ("notes/kept.md", ""),
        ("src/.gitignore", "!d.log\n/e.md\n"),
        ("src/d.log", ""),
        ("src/e.md", ""),
        ("src/made/f.md", ""),
        ("src-2/e.md", ""),
    ];
    for (path, text) in files {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if text.is_empty() { "berth" } else { text }).unwrap();
    }
    let found = |files: &FolderWorkspace| {
        let hits = block_on(files.search("berth", None, 20)).unwrap();
        hits.into_iter().map(|hit| hit.entry.path).collect::<Vec<_>>()
    };
    let files = FolderWorkspace::open(place.path()).unwrap();
    assert_eq!(found(&files).len(), 9);
    let skipping = files.skipping_ignored();
    let expected = ["/a.md", "/notes/kept.md", "/src-2/e.md", "/src/d.log", "/src/made/f.md"];
    assert_eq!(found(&skipping), expected);
    assert_eq!(read(&skipping, "made/b.md"), "berth", "a named file is read");
}

#[test]
fn an_operation_has_a_time_limit() {
    let place = place();
    let files = jail(&place).time_limit(Duration::ZERO);
    let fault = block_on(files.write("a.md", "x", &Precondition::Any)).map_err(|fault| said(&fault));
    // It either was past the point of no return or did not happen: the answer is the truth.
    let now = fs::read_to_string(place.path().join("jail/a.md")).unwrap();
    match fault {
        Ok(()) => assert_eq!(now, "x"),
        Err(fault) => {
            assert_eq!(fault, "timeout: it took longer than 0 ms to write the file, and was stopped");
            assert_eq!(now, "Berth 4 is free.");
        }
    }
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_permissions() {
    let place = place();
    let (root, files) = (place.path().join("jail"), jail(&place));
    fs::set_permissions(root.join("a.md"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(root.join("a.md")).unwrap();
    assert_eq!(
        write(&files, "a.md", "new", &Precondition::Content("Berth 4 is free.".to_owned())),
        "written"
    );
    let after = fs::metadata(root.join("a.md")).unwrap();
    assert_eq!(
        (after.mode() & 0o7777, fs::read_to_string(root.join("a.md")).unwrap()),
        (0o640, "new".to_owned())
    );
    assert_ne!(before.ino(), after.ino(), "it is another file under the same name");
    assert_eq!(write(&files, "x/y/z.md", "deep", &Precondition::Absent), "written");
    assert_eq!(read(&files, "x/y/z.md"), "deep");
    assert_eq!(fs::read_dir(root.join("x/y")).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn a_precondition_that_does_not_hold_leaves_everything_as_it_was() {
    let place = place();
    let files = jail(&place);
    let changed = "file_changed: `/a.md` has changed since it was read; read it again";
    for wanted in ["", "Berth 4", "Berth 4 is free.x", "Berth 5 is free."] {
        assert_eq!(write(&files, "/a.md", "x", &Precondition::Content(wanted.to_owned())), changed);
    }
    let exists = "file_changed: `/a.md` already exists";
    assert_eq!(write(&files, "a.md", "x", &Precondition::Absent), exists);
    assert!(write(&files, "no.md", "x", &Precondition::Content(String::new())).starts_with("file_changed"));
    assert_eq!(read(&files, "a.md"), "Berth 4 is free.");
    assert_eq!(read(&files, "no.md"), "(none)");
    let only_read = FolderWorkspace::open(place.path().join("jail")).unwrap();
    let refused = "read_only: `a.md` cannot be written: this workspace can only be read";
    assert_eq!(write(&only_read, "a.md", "x", &Precondition::Any), refused);
}

#[test]
fn the_folder_stays_the_one_that_was_opened() {
    let place = place();
    let files = jail(&place);
    fs::rename(place.path().join("jail"), place.path().join("moved")).unwrap();
    symlink(place.path().join("outside"), place.path().join("jail")).unwrap();
    assert_eq!(read(&files, "a.md"), "Berth 4 is free.");
    assert_eq!(read(&files, "secret"), "(none)");
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let place = place();
    let error = FolderWorkspace::open(place.path().join("nowhere")).unwrap_err();
    assert!(matches!(&error, ToolsError::Folder { .. }) && error.hint().is_some(), "{error}");
}
