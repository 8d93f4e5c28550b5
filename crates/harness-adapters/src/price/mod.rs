//! What model calls cost when the provider does not say: dated price lists.
//!
//! A cost has one of three origins. The provider *reported* it; or it was counted from a list of prices
//! as they stood on a date, which the usage then names; or it is unknown, and the usage holds none. It is
//! never given as zero for want of knowledge.
//!
//! ```
//! use harness_adapters::PriceTable;
//! use harness_core::message::{Cost, CostSource, Usage};
//!
//! let prices = PriceTable::builtin();
//! let mut usage = Usage::tokens(1_000, 200);
//! prices.settle("anthropic", "claude-sonnet-4-5-20250929", &mut usage);
//! assert_eq!(usage.total_cost(), Some(Cost(6_000_000)));
//! assert!(matches!(usage.cost_source(), Some(CostSource::Table(_))));
//!
//! let mut unknown = Usage::tokens(1_000, 200);
//! prices.settle("localhost", "qwen3:8b", &mut unknown);
//! assert_eq!(unknown.total_cost(), None);
//! ```

mod table;

pub use table::PriceTable;
