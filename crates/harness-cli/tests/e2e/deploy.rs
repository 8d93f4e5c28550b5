//! The manifests of `docs/deploy`: against the schemas of Kubernetes, the settings of a real server, the program and the
//! page that explains them.

use crate::support::{harness, root};
use crate::{installed, other, ran};

/// Below the folder of the installed package.
const SERVER: &str = "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";

#[test]
fn manifests_of_a_cluster_are_valid_and_explained() {
    let folder = installed("deploy");
    let script = folder.join("deploy.py");
    std::fs::write(&script, include_str!("deploy.py")).unwrap();
    let mut check = other(folder.join("venv/bin/python"), &folder);
    check.arg(&script).arg(root()).env("SERVER", installed("cluster").join(SERVER));
    check.env("PROGRAM", harness(&folder, &[]).get_program());
    assert_eq!(ran(check).trim_end(), "ok");
}
