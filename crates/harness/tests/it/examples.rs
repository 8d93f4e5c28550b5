//! The examples print what their pages say.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

#[expect(clippy::disallowed_methods, reason = "the example is the program under test")]
fn run(program: &Path) -> Output {
    Command::new(program).output().unwrap()
}

/// The output of an example, which `cargo test` has built beside this test.
#[track_caller]
fn output(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "`{name}` is not built; run `cargo build -p harness --examples`");
    let output = run(&program);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

macro_rules! examples {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), output(stringify!($name)));
            }
        )*

        #[test]
        fn every_example_is_run() {
            let files = std::fs::read_dir(folder()).unwrap();
            let mut names: Vec<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, [$(concat!(stringify!($name), ".rs")),*]);
        }
    };
}

examples! {
    approvals,
    compaction,
    control,
    crash,
    custom_model,
    custom_tool,
    memory,
    recording,
    steering,
    streaming,
    sub_agents,
    testing,
    threads,
    typed,
}
