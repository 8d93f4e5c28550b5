//! One markdown table of all figures.

use super::ours::Case;
use super::peers::{Figure, Value};

/// Our cases, then the peers with how many times ours each takes.
pub(super) fn render(ours: &[Case], peers: &[Figure]) -> String {
    let mut lines =
        vec!["| case | time | peak memory | against |".to_owned(), "|---|---|---|---|".to_owned()];
    lines.extend(ours.iter().map(our_line));
    lines.push(String::new());
    lines.push(
        "| peer | time | peak memory | our case | times ours | without the scripted model |".to_owned(),
    );
    lines.push("|---|---|---|---|---|---|".to_owned());
    lines.extend(peers.iter().map(|figure| peer_line(figure, ours)));
    lines.join("\n")
}

fn our_line(case: &Case) -> String {
    let time = match (case.us_per_iteration, case.wall_ms) {
        (Some(us), _) => format!("{us:.2} µs per iteration"),
        (None, Some(ms)) => format!("{ms:.0} ms per wave"),
        (None, None) => String::new(),
    };
    let memory = case.peak_rss_mib.map(mebibytes).unwrap_or_default();
    format!("| {} | {time} | {memory} | {} |", case.name, against(case))
}

fn against(case: &Case) -> String {
    let mut parts = Vec::new();
    if let (Some(wall), Some(bare)) = (case.wall_ms, case.baseline_ms) {
        parts.push(format!("{:.2} of {bare:.0} ms of bare tasks", wall / bare));
    }
    if let (Some(peak), Some(idle)) = (case.peak_rss_mib, case.idle_rss_mib) {
        parts.push(format!("{:.1} MiB over idle", peak - idle));
    }
    parts.join(", ")
}

fn peer_line(figure: &Figure, ours: &[Case]) -> String {
    let case = ours.iter().find(|case| case.name == figure.ours);
    let (time, own) = match figure.value {
        Value::PerIteration(us) => {
            (format!("{us:.2} µs per iteration"), case.and_then(|c| c.us_per_iteration))
        }
        Value::Wave(ms) => (format!("{ms:.0} ms per wave"), case.and_then(|c| c.wall_ms)),
    };
    let (Value::PerIteration(value) | Value::Wave(value)) = figure.value;
    let ratio = own.map_or_else(|| "not measured".to_owned(), |own| format!("{:.1}", value / own));
    let peak = mebibytes(figure.peak_rss_mib);
    let net = net_ratio(figure, case, ours).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    format!("| {} | {time} | {peak} | {} | {ratio} | {net} |", figure.peer, figure.ours)
}

/// How many times ours it takes when both leave out what their scripted model and tool take themselves.
fn net_ratio(figure: &Figure, case: Option<&Case>, ours: &[Case]) -> Option<f64> {
    let Value::PerIteration(value) = figure.value else { return None };
    let scripted = ours.iter().find(|case| case.name == "scripted")?.us_per_iteration?;
    Some((value - figure.scripted?) / (case?.us_per_iteration? - scripted))
}

fn mebibytes(value: f64) -> String {
    format!("{value:.1} MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_stand_beside_our_case_of_the_same_work() {
        let ours = [
            Case {
                name: "loop20".into(),
                us_per_iteration: Some(1.0),
                peak_rss_mib: Some(8.0),
                ..Case::default()
            },
            Case { name: "scripted".into(), us_per_iteration: Some(0.2), ..Case::default() },
            Case {
                name: "concurrent1000".into(),
                wall_ms: Some(220.0),
                baseline_ms: Some(200.0),
                peak_rss_mib: Some(20.0),
                idle_rss_mib: Some(5.0),
                ..Case::default()
            },
        ];
        let figure =
            |peer, ours, value| Figure { peer, ours, value, scripted: Some(0.4), peak_rss_mib: 70.0 };
        let peers = [
            figure("one", "loop20", Value::PerIteration(6.8)),
            figure("two", "concurrent1000", Value::Wave(440.0)),
            figure("three", "gone", Value::PerIteration(1.0)),
        ];
        insta::assert_snapshot!(render(&ours, &peers), @r"
        | case | time | peak memory | against |
        |---|---|---|---|
        | loop20 | 1.00 µs per iteration | 8.0 MiB |  |
        | scripted | 0.20 µs per iteration |  |  |
        | concurrent1000 | 220 ms per wave | 20.0 MiB | 1.10 of 200 ms of bare tasks, 15.0 MiB over idle |

        | peer | time | peak memory | our case | times ours | without the scripted model |
        |---|---|---|---|---|---|
        | one | 6.80 µs per iteration | 70.0 MiB | loop20 | 6.8 | 8.00 |
        | two | 440 ms per wave | 70.0 MiB | concurrent1000 | 2.0 |  |
        | three | 1.00 µs per iteration | 70.0 MiB | gone | not measured |  |
        ");
    }
}
