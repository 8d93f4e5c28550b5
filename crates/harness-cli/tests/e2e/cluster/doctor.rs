//! `harness doctor` on an engine: each finding says what to do.

use super::{Cluster, LONG, open};
use crate::support::until;

/// The lines of the engine, and the exit code.
fn looked(cluster: &Cluster) -> (Option<i32>, String) {
    let words = ["doctor", "--engine", &cluster.url(1), "--admin", &cluster.url(2)];
    let output = cluster.harness(&words, &[]);
    let lines = output.stdout.lines().skip_while(|line| *line != "engine").skip(1);
    let lines = lines.take_while(|line| line.starts_with(' ')).map(|line| format!("{}\n", line.trim()));
    (output.code, lines.collect())
}

#[track_caller]
fn check(cluster: &Cluster, code: i32, expected: &[&str]) {
    let (found, lines) = looked(cluster);
    for text in expected {
        assert!(lines.contains(text), "{text}: {lines}");
    }
    assert_eq!(found, Some(code), "{lines}");
}

#[test]
fn an_engine_is_looked_at() {
    let mut cluster = Cluster::start("");
    let worker = cluster.url(3);
    let responds = format!("ok      workers at {worker}/ respond: latest, 0 runs");
    let sound =
        ["ok      the ingress ", "ok      engine 1.7.", "agree to 1 s", &responds, "no run needs a person"];
    check(&cluster, 0, &sound);

    cluster.prompt("ada", "m1", "Please pay.");
    cluster.is_paying(1);
    cluster.kill_worker();
    let gone = format!("fault   no worker responds at {worker}/, so new runs wait (1 run): ");
    check(&cluster, 1, &[&gone, "fix: start a worker there"]);
    cluster.pause("ada");
    check(&cluster, 1, &["fault   run of thread `ada`: paused", "then: harness engine resume ada"]);
    open(cluster.project.path());
    cluster.start_worker(&[]);
    until(LONG, "the resumed run", || cluster.operate(&["resume", "ada"]).code == Some(0));
    assert_eq!(cluster.finished("ada").unwrap().answer.as_deref(), Some("Done."));
    check(&cluster, 0, &sound);
}
