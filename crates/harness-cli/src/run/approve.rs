//! Who decides about calls that need approval.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stdin};

use harness::core::port::{ApprovalAsk, Approver, Decision};

use crate::args::Approve;
use crate::render::one_line;
use crate::terminal;

/// Decides as `--approve` says.
pub(crate) struct CommandLineApprover(pub(crate) Approve);

impl Approver for CommandLineApprover {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        match self.0 {
            Approve::Always => Decision::Granted,
            Approve::Never => {
                Decision::Denied { reason: "the person who runs this does not approve such calls".to_owned() }
            }
            Approve::Ask if stdin().is_terminal() => at_terminal(&ask).await,
            Approve::Ask => Decision::Later,
        }
    }
}

/// Asks on the terminal. The line is read by a thread of its own, so that Ctrl-C works while it waits.
async fn at_terminal(ask: &ApprovalAsk) -> Decision {
    let call = one_line(&format!("{} {}", ask.proposed.call.name, ask.proposed.call.arguments.text()));
    let question =
        format!("? {call}\n  {}\n  run it? [y]es, [n]o, [l]ater: ", one_line(&ask.proposed.reason));
    let (answer, answered) = tokio::sync::oneshot::channel();
    let reader = std::thread::Builder::new().name("approval".to_owned()).spawn(move || {
        let mut err = terminal::questions();
        let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
        let mut line = String::new();
        let read = stdin().lock().read_line(&mut line);
        let _ = answer.send(read.map(|_| line));
    });
    if reader.is_err() {
        return Decision::Later;
    }
    tokio::select! {
        () = ask.cancel.cancelled() => Decision::Later,
        line = answered => match line {
            Ok(Ok(line)) => decision(&line),
            Ok(Err(_)) | Err(_) => Decision::Later,
        },
    }
}

fn decision(line: &str) -> Decision {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Decision::Granted,
        "" | "l" | "later" => Decision::Later,
        "n" | "no" => Decision::Denied { reason: "not approved".to_owned() },
        reason => Decision::Denied { reason: reason.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_runs_a_call() {
        assert_eq!(decision("Yes\n"), Decision::Granted);
        assert_eq!(decision("\n"), Decision::Later);
        assert_eq!(decision("n\n"), Decision::Denied { reason: "not approved".to_owned() });
        assert_eq!(decision("too much\n"), Decision::Denied { reason: "too much".to_owned() });
    }
}
