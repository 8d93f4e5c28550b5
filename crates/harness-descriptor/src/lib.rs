//! Agent graphs as YAML: read, materialize, hash, build, resolve.
//!
//! A *descriptor* names agents, their instructions, tools and handoffs. This crate turns its
//! text into a [`Descriptor`] (prompt files and instruction parts in place), hashes it exactly as
//! the source system does, checks it, and builds a [`Graph`] that determines for every turn which
//! instructions, tools, handoffs and model an agent gets.
//!
//! It does not call models or run tools, knows no asynchronous runtime (but for the feature `tokio`,
//! which adds `FileSource::load_async`), and reads files only in
//! [`load_file`], [`FileSource`] and [`check::check_file`].
//!
//! Check a descriptor, hash it, and see what a change touches:
//!
//! ```
//! use harness_descriptor::check::{CheckOptions, Style, check_text};
//! use harness_descriptor::load_text;
//!
//! let yaml = "
//! runtime: { entry_agent: desk }
//! agents:
//!   desk: { model: small, handoffs: [expert] }
//!   expert: { model: large, instructions: Be exact. }
//! ";
//! let before = load_text(yaml)?;
//! assert!(before.hash().to_string().starts_with("sha256:"));
//!
//! let report = check_text(yaml.replace("expert:", "exprt:"), &CheckOptions::default());
//! assert!(!report.is_sound());
//! print!("{}", report.render(Style::Plain));
//!
//! let after = load_text(yaml.replace("exact", "brief"))?;
//! let diff = before.diff(&after);
//! assert_eq!(diff.affected_agents, ["expert"]);
//! assert_eq!(diff.to_string(), "~ agent `expert`, instructions: \"Be exact.\" → \"Be brief.\"\n");
//! # Ok::<(), harness_descriptor::DescriptorError>(())
//! ```
//!
//! Build its graph and ask what an agent gets:
//!
//! ```
//! use harness_descriptor::{ContextInput, Graph, Registry, load_text};
//!
//! let descriptor = load_text(
//!     r#"
//! runtime: { entry_agent: desk }
//! context:
//!   fields: { user.name: { default: Ada } }
//!   references: { user.name: true }
//! agents:
//!   desk:
//!     model: small
//!     instructions: "Greet {{context.user.name}}."
//! "#,
//! )?;
//! let graph = Graph::build(&descriptor, &Registry::new())?;
//! let context = graph.create_context(&ContextInput::new("2026-01-01T00:00:00.000Z"))?;
//! let resolved = graph.resolve(graph.entry_agent().id(), &context)?;
//! assert_eq!(resolved.instructions.as_deref(), Some("Greet Ada."));
//! # Ok::<(), harness_descriptor::DescriptorError>(())
//! ```

mod canonical;
pub mod check;
mod descriptor;
pub mod diff;
mod disk;
mod emit;
mod error;
mod faults;
mod field;
mod graph;
mod known;
mod limits;
mod load;
mod materialize;
mod number;
mod output;
mod paths;
mod port;
mod run;
pub mod schema;
pub mod source;
mod unknown;
mod value;

pub use canonical::DescriptorHash;
pub use descriptor::{Descriptor, Warning, WarningKind};
pub use error::{DescriptorError, Fault, PathRule};
pub use field::{Expected, Field, Form, PathUse, Target};
pub use graph::{
    Agent, BoundTool, ContextInput, ContextPath, Graph, Handoff, HandoffPreview, Instructions, Metadata,
    OpenHandoff, Part, PartPreview, Preview, Registry, RegistryTool, ResolvedAgent, Standing, Template,
};
pub use harness_diagnostics::document::LossyReason;
pub use harness_diagnostics::{Place, YamlFault};
pub use limits::Limits;
pub use load::{FileSource, PromptMap, TextSource, load_file, load_text};
pub use port::GraphAgents;
pub use run::{
    CompactionPreset, CompactionSetting, RunLimitSettings, RunSection, Switch, is_contract, load_contract,
};
pub use source::AgentHarnessDescriptor;
pub use value::{Map, Value};

#[doc = include_str!("../../../docs/cookbook/descriptors.md")]
#[cfg(doctest)]
struct Cookbook;
