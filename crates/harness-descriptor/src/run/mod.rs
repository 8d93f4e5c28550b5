//! The section `run`, an extension of the format that controls how runs continue until the work is
//! done.

mod contract;
mod section;
mod shape;
mod table;

pub(crate) use contract::ContractFile;
pub use contract::{check_contract, is_contract, load_contract};
pub(crate) use section::read;
pub use section::{CompactionPreset, CompactionSetting, RunLimitSettings, RunSection, Switch};

/// The JSON Schema of the section.
pub(crate) fn schema() -> serde_json::Value {
    shape::Shape::Section(table::RUN).schema()
}

/// JSON Schema of a contract file.
pub(crate) fn contract_schema() -> serde_json::Value {
    shape::Shape::Section(table::CONTRACT).schema()
}
