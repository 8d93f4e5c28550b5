//! Reads YAML files with places and reports errors with line, column, caret and suggestion.
//!
//! Every file that people write for harness (descriptor, contract, registry, backend, suite, key file)
//! is read here, so an error looks the same in all of them:
//!
//! ```text
//! registry.yaml:3:13: error[tools.registry_faulty]: unknown key `comand` in tools.look
//!   |
//! 3 |   look: { comand: ls }
//!   |           ^^^^^^
//! help: did you mean `command`?
//! ```
//!
//! [`Fields`] reads a mapping of a [`Document`] key by key and reports all errors to [`Findings`].
//!
//! ```
//! use harness_diagnostics::{Fields, Findings, Style, YamlLimits, read};
//!
//! let text = "name: desk\ntimout: 5s\n";
//! let document = read(text, "desk.yaml", &YamlLimits::for_text(1 << 20), None)?;
//! let findings = Findings::new(&document, "desk.invalid");
//! let fields = Fields::root(&findings, "the desk").unwrap();
//! fields.known(&["name", "timeout"]);
//! assert_eq!(fields.text("name").as_deref(), Some("desk"));
//!
//! let diagnostics = findings.into_diagnostics();
//! let shown = diagnostics.iter().map(|found| found.render(Style::Plain).to_string()).collect::<String>();
//! assert_eq!(shown, "\
//! desk.yaml:2:1: error[desk.invalid]: unknown key `timout` in the desk
//!   |
//! 2 | timout: 5s
//!   | ^^^^^^
//! help: did you mean `timeout`?
//! ");
//! # Ok::<(), harness_diagnostics::YamlError>(())
//! ```

mod diagnostic;
pub mod document;
mod fields;
mod findings;
mod instant;
mod lines;
pub mod number;
mod place;
mod render;
pub mod suggest;
mod yaml;

pub use diagnostic::{Diagnostic, Related, Severity};
pub use document::{Document, NodeId};
pub use fields::{Fields, Item};
pub use findings::{Codes, Findings};
pub use instant::Instant;
pub use place::Place;
pub use render::{Rendered, Style};
pub use yaml::{YamlError, YamlFault, YamlLimits, decode_lossy, read};
