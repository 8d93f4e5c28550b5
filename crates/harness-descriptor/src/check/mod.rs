//! Everything that is wrong with a descriptor, and everything that looks wrong, in one pass.
//!
//! [`check_file`] and [`check_text`] (or [`FileSource::check`](crate::FileSource::check) and
//! [`TextSource::check`](crate::TextSource::check)) give a [`Report`]: errors and warnings in the
//! order of the text, human-readable ([`Report::render`]) and as data (it serializes).
//!
//! ```
//! use harness_descriptor::check::{CheckOptions, Style, check_text};
//!
//! let report = check_text("
//! runtime: { entry_agent: desk }
//! agents:
//!   desk: { model: small, handoffs: [exprt] }
//!   expert: { model: large, instructons: Be exact. }
//! ", &CheckOptions::default());
//! assert!(!report.is_sound());
//! let shown = report.render(Style::Plain).to_string();
//! assert!(shown.contains("did you mean `expert`?"), "{shown}");
//! assert!(shown.contains("did you mean `instructions`?"), "{shown}");
//! ```

mod lint;
mod options;
mod pass;
mod report;

pub use harness_diagnostics::{Diagnostic, Related, Rendered, Severity, Style};
pub use options::CheckOptions;
pub use pass::{check_file, check_text};
pub use report::Report;

pub use crate::run::check_contract;
