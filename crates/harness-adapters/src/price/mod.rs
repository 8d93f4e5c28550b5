//! Dated price lists, for providers that do not report a cost.
//!
//! A cost is *reported* by the provider, calculated from a list of prices of a date, which the
//! usage then names, or unknown. An unknown cost is absent, never zero.
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

pub use table::{PriceTable, TokenPrices};
