//! The example prints what its page says.

use std::path::Path;
use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "the example is the program under test")]
fn serve() {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join("serve");
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "it is not built; run `cargo build -p harness-server --examples`");
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "without a token: 401 Unauthorized\ncreate: 201 Created\nanswer: \"You said: Hello\"\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
