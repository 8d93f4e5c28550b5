//! Memory layers and their pipeline.

mod ask;
mod cx;
mod def;
mod history;
mod hook;
mod schema;
mod storage;
mod tokens;

pub use ask::{
    AppendAsk, Appended, Called, Content, Decided, Decision, DeltaAsk, Ending, RecallAsk, Recalled, Rerender,
    RerenderScope, ReturnAsk, Returned, Spawned, StoreAsk, ToolAsk, Update, developer, is_developer,
};
pub use cx::{AskModel, Execution, LayerCx};
pub use def::{
    Budget, FunctionDef, Hook, LayerDef, LayerId, OnInitError, OnToolGateError, Placement, RecallMode,
    RerenderTiming, Scope, slot,
};
pub use history::History;
pub use hook::{DynLayer, Layer};
pub use schema::{ItemCategory, ItemJudge, ItemSchema, ItemSchemas};
pub use storage::ScopedStorage;
pub use tokens::Utf16Quarters;
