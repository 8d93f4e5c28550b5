//! Memory layers and their pipeline.
//!
//! A layer shows something in the view ([`Layer::recall`]), learns from what happens ([`Layer::store`],
//! [`Layer::on_append`]), chooses the history that is shown, and may object to tool calls and answers.
//! Implement [`Layer`], or make a small one from closures with [`FnLayer`].

mod anchor;
mod api;
mod ask;
mod assembly;
mod banding;
mod budget;
mod child;
mod closures;
mod cx;
mod def;
mod flow;
mod history;
mod hook;
mod item_guard;
mod learn;
mod overlay;
mod pipeline;
mod run;
mod saved;
mod schema;
mod stack;
mod state;
mod steering;
mod storage;
mod supersede;
mod tokens;
mod usage;
mod view;

pub use anchor::{CacheConfig, ReanchorReason};
pub use ask::{
    AppendAsk, Appended, Called, Content, Decided, Decision, DeltaAsk, Ending, RecallAsk, Recalled, Rerender,
    RerenderScope, ReturnAsk, Spawned, StoreAsk, ToolAsk, Update, developer, is_developer,
};
pub use assembly::ViewBudget;
pub use banding::Banded;
pub use budget::{Shares, Totals, share};
pub use closures::FnLayer;
pub use cx::{AskModel, Execution, LayerCx};
pub use def::{
    Budget, FunctionDef, Hook, LayerDef, LayerId, OnInitError, OnToolGateError, Placement, RecallMode,
    RerenderTiming, Scope,
};
pub use flow::{AppendFlow, Output, RecallFlow, RerenderRequest};
pub use history::History;
pub use hook::{DynLayer, Layer};
pub use pipeline::Pipeline;
pub use run::LayerRun;
pub use schema::{ItemCategory, ItemSchema, ItemSchemas};
pub use stack::{LayerReport, LayerSetup};
pub(crate) use steering::Guides;
pub use storage::ScopedStorage;
pub use supersede::{LayerUpdate, Supersede, UpdateAction};
pub use usage::{DropReason, Dropped, EpochFigures, LayerShare, LayerUsage, Served};
