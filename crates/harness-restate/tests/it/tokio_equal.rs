//! Law (g): one script on the tokio driver and on the simulated engine gives equal transcripts and events.

use harness::core::testing::event_line;
use harness_restate::durable::DriveOptions;
use harness_restate::durable::sim::SimFaults;

use super::crashes::play;
use super::kept::events;
use super::on_tokio::on_tokio;
use super::scripts;

#[tokio::test]
async fn a_script_has_equal_events_on_tokio_and_on_the_engine() {
    let scripts = [
        "plain",
        "each class of tools",
        "one call after the other",
        "steering",
        "abort",
        "approval while the run waits",
        "turns",
    ];
    for script in scripts::all() {
        if scripts.contains(&script.name) {
            let left = play(&script, SimFaults::default(), DriveOptions::default());
            let mut lines: Vec<_> = events(&left.log).iter().map(|event| event_line(&event.kind)).collect();
            let mut expected = on_tokio(&script).await;
            if script.name == "each class of tools" {
                // Calls that run at once end in the order of their workers.
                lines.sort();
                expected.sort();
            }
            assert_eq!(lines, expected, "{}", script.name);
        }
    }
}
