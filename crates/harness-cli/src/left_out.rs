//! Parts of the program that this build leaves out.

use crate::error::CliError;

/// The error of a command or option whose feature this build was compiled without.
pub(crate) fn left_out(what: &str, feature: &str) -> CliError {
    CliError::Part {
        kind: "cli.left_out".to_owned(),
        message: format!("{what} is not part of this build"),
        hint: Some(format!(
            "build with `--features {feature}`, or install everything with `cargo install --path crates/harness-cli`"
        )),
    }
}
