//! Sharing the tokens of a view between layers and history.

use super::def::Budget;
use crate::MemoryError;

/// Part of the shared tokens that layers get; the history gets the rest.
const POOL: f64 = 0.6;

/// How many tokens a view may have.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Totals {
    /// All tokens of the request and its answer.
    pub total: f64,
    /// Set aside for the answer.
    pub response_reserve: f64,
    /// The instructions, and whatever else is sent with every request.
    pub system: f64,
}

impl Totals {
    /// A total, of which a reserve for the answer and the instructions are taken.
    pub fn new(total: f64, response_reserve: f64, system: f64) -> Self {
        Self { total, response_reserve, system }
    }

    fn check(self) -> Result<(), MemoryError> {
        let figures = [
            ("totalBudget", self.total),
            ("systemPromptTokens", self.system),
            ("responseReserve", self.response_reserve),
        ];
        match figures.into_iter().find(|(_, figure)| figure.is_nan()) {
            Some((field, _)) => Err(MemoryError::BudgetInput { field }),
            None => Ok(()),
        }
    }
}

/// Shares of the layers and the history. Nothing is rounded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shares {
    /// Tokens of each layer, in the order in which the budgets were given.
    pub layers: Vec<f64>,
    /// Tokens of the history.
    pub history: f64,
}

/// Shares the tokens of a view (memory reference, section 7): minimums first, then six tenths of the rest
/// by headroom, four tenths for the history. Only layers that recall something should be given.
///
/// ```
/// use harness_memory::layer::{Budget, Totals, share};
///
/// let shares = share(Totals::new(10_000.0, 1_000.0, 0.0), &[Budget::Fixed(1_000.0)])?;
/// assert_eq!((shares.layers[0], shares.history), (1_000.0, 3_600.0));
/// # Ok::<(), harness_memory::MemoryError>(())
/// ```
///
/// # Errors
/// When a total is not a number.
pub fn share(totals: Totals, budgets: &[Budget]) -> Result<Shares, MemoryError> {
    totals.check()?;
    let available = totals.total - totals.response_reserve - totals.system;
    if available <= 0.0 || available.is_nan() {
        return Ok(Shares { layers: vec![0.0; budgets.len()], history: 0.0 });
    }
    let minimums: Vec<f64> = budgets.iter().copied().map(minimum).collect();
    let needed: f64 = minimums.iter().sum();
    let remaining = available - needed;
    if remaining < 0.0 {
        let layers = minimums.iter().map(|min| (min * available / needed).floor()).collect();
        return Ok(Shares { layers, history: 0.0 });
    }
    let headrooms: Vec<f64> =
        budgets.iter().zip(&minimums).map(|(budget, min)| (maximum(*budget) - min).max(0.0)).collect();
    let given = divide(POOL * remaining, &headrooms);
    let layers = minimums.iter().zip(given).map(|(min, given)| min + given).collect();
    Ok(Shares { layers, history: (1.0 - POOL) * remaining })
}

/// Share of `pool` for each headroom, never more than the headroom.
fn divide(pool: f64, headrooms: &[f64]) -> Vec<f64> {
    let is_open = |headroom: &f64| headroom.is_infinite();
    let open = headrooms.iter().filter(|h| is_open(h)).count();
    let finite: f64 = headrooms.iter().filter(|h| !is_open(h)).sum();
    let for_finite = if open == 0 { pool } else { pool / 2.0 };
    let bounded = |headroom: f64| {
        if finite > 0.0 { (headroom / finite * for_finite).min(headroom) } else { 0.0 }
    };
    let taken: f64 = headrooms.iter().filter(|h| !is_open(h)).map(|h| bounded(*h)).sum();
    let count = f64::from(u32::try_from(open).unwrap_or(u32::MAX));
    let each = (pool - taken) / count.max(1.0);
    headrooms.iter().map(|h| if is_open(h) { each } else { bounded(*h) }).collect()
}

fn minimum(budget: Budget) -> f64 {
    match budget {
        Budget::Range { min, .. } => min,
        Budget::Auto | Budget::Fixed(_) => 0.0,
    }
}

fn maximum(budget: Budget) -> f64 {
    match budget {
        Budget::Auto => f64::INFINITY,
        Budget::Fixed(tokens) => tokens,
        Budget::Range { max, .. } => max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(totals: (f64, f64, f64), budgets: &[Budget], layers: &[f64], history: f64) {
        let shares = share(Totals::new(totals.0, totals.1, totals.2), budgets).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 || a.to_bits() == b.to_bits();
        let same = shares.layers.len() == layers.len()
            && shares.layers.iter().zip(layers).all(|(a, b)| close(*a, *b))
            && close(shares.history, history);
        assert!(same, "{shares:?}");
    }

    fn range(min: f64, max: f64) -> Budget {
        Budget::Range { min, max }
    }

    #[test]
    fn headroom_shares_the_pool() {
        check(
            (4_000.0, 500.0, 500.0),
            &[Budget::Fixed(3_000.0), Budget::Fixed(1_000.0)],
            &[1_350.0, 450.0],
            1_200.0,
        );
        check((1_000.0, 0.0, 0.0), &[], &[], 400.0);
        check((1_000.0, 0.0, 0.0), &[Budget::Auto, Budget::Fixed(0.0)], &[600.0, 0.0], 400.0);
    }

    #[test]
    fn too_little_is_shared_by_minimums_and_nothing_is_left_for_history() {
        check((300.0, 0.0, 0.0), &[range(200.0, 900.0), range(400.0, 400.0)], &[100.0, 200.0], 0.0);
        check((10.0, 10.0, 0.0), &[range(5.0, 9.0)], &[0.0], 0.0);
    }

    #[test]
    fn infinity_is_a_total_like_any_other() {
        check((f64::INFINITY, 0.0, 0.0), &[Budget::Fixed(7.0)], &[7.0], f64::INFINITY);
    }

    #[test]
    fn a_figure_that_is_not_a_number_is_named() {
        let fault = share(Totals::new(1.0, f64::NAN, 0.0), &[]).unwrap_err();
        assert!(fault.to_string().contains("responseReserve"), "{fault}");
    }
}
