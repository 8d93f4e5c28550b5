//! `harness dev cluster` without a server of an engine.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::Project;

#[track_caller]
fn check(options: &[&str], expected: &[&str]) {
    let project = Project::plain();
    project.write("server", "#!/bin/sh\necho no disk >&2\nexit 3\n");
    std::fs::set_permissions(project.path().join("server"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = project.harness(&[&["dev", "cluster", "harness.yaml"], options].concat());
    assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{output:?}");
    for text in expected {
        assert!(output.stderr.contains(text), "{text}: {output:?}");
    }
}

#[test]
fn a_missing_server_is_explained() {
    check(
        &["--server", "missing"],
        &["the server missing does not exist", "npm install --global @restatedev/restate-server"],
    );
}

#[test]
fn a_server_that_ends_is_named_with_its_log() {
    let expected =
        ["engine | no disk\n", "engine did not start: it ended with exit code 3; its log is above"];
    check(&["--server", "./server"], &expected);
}
