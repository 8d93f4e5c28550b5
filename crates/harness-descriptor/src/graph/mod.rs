//! The agent graph: built once from a descriptor and a registry, asked on every turn.

mod agents;
mod build;
mod context;
mod declared;
mod draw;
mod max_turns;
mod path;
mod preview;
mod references;
mod registry;
mod resolve;
mod shape;
mod template;

pub use agents::{Agent, BoundTool, Graph, Handoff, Instructions, Metadata, Part};
pub use context::ContextInput;
pub(crate) use context::defaults;
pub use path::ContextPath;
pub use preview::{HandoffPreview, PartPreview, Preview, Standing};
pub use registry::{Registry, RegistryTool};
pub use resolve::{OpenHandoff, ResolvedAgent};
pub use template::Template;
pub(crate) use template::{Placeholder, placeholders};
