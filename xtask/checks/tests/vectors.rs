//! The project's own golden vectors.

use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of the chores starts one")]
fn every_vector_passes_or_is_excused() {
    let ran = Command::new(env!("CARGO_BIN_EXE_checks")).arg("conformance").output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}");
}
