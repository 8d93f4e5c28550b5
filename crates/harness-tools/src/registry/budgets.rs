//! The section `budgets` of a registry file: what users, tenants or everyone may spend on models.

use harness_core::limits::{BudgetPeriod, Payer, SpendBudget};
use harness_diagnostics::Fields;

use super::bound::Registry;
use super::models::cost;

/// Key of the section.
pub(super) const SECTION: &str = "budgets";

/// Most tokens of a budget.
const MOST: u64 = 1_000_000_000_000;

impl Registry {
    /// The budgets of the section `budgets`, in the order of the file.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use harness_core::limits::Payer;
    /// let registry = harness_tools::Registry::load("registry.yaml")?;
    /// let each_user = registry.budgets().iter().filter(|budget| budget.per == Payer::User);
    /// # drop(each_user);
    /// # Ok::<(), harness_tools::ToolsError>(())
    /// ```
    pub fn budgets(&self) -> &[SpendBudget] {
        &self.budgets
    }
}

/// Reads the section `budgets` of a file.
pub(super) fn read(root: &Fields<'_>) -> Vec<SpendBudget> {
    let hint = "write `NAME: { per: user, tokens: 1000000 }` for each budget";
    let Some(section) = root.section(SECTION, hint) else { return Vec::new() };
    section.keys().filter_map(|name| read_budget(name, &section)).collect()
}

fn read_budget(name: &str, section: &Fields<'_>) -> Option<SpendBudget> {
    if name.trim().is_empty() || name.contains(char::is_whitespace) || name.contains('/') {
        section.key_error(
            name,
            format!("invalid budget name `{name}`"),
            "use a name without spaces and slashes",
        );
    }
    let fields = section.section(name, "write `tokens` or `cost` below it")?;
    fields.known(&["per", "tokens", "cost", "period"]);
    let mut budget = SpendBudget::new(name, per(&fields, "per").unwrap_or_default());
    budget.tokens = fields.whole("tokens", 1, MOST);
    budget.cost = cost(&fields, "cost", "an amount of money", "write US dollars, such as `2.50`");
    let periods = BudgetPeriod::ALL.map(|period| (period.as_str(), period));
    budget.period = fields.one_of("period", &periods).unwrap_or_default();
    if !fields.has("tokens") && !fields.has("cost") {
        section.key_error(
            name,
            format!("no limit is set in the budget `{name}`"),
            "write `tokens` or `cost`",
        );
    }
    Some(budget)
}

/// Payer that a key names.
pub(super) fn per(fields: &Fields<'_>, key: &str) -> Option<Payer> {
    let text = fields.text(key)?;
    match text.strip_prefix("metadata.") {
        Some(key) if !key.is_empty() => Some(Payer::Metadata(key.into())),
        None if text == "user" => Some(Payer::User),
        None if text == "all" => Some(Payer::All),
        Some(_) | None => {
            let hint = "write `user`, `all`, or `metadata.KEY` for a key of the thread's metadata";
            fields.error(key, format!("`{text}` does not say whose work it is"), hint);
            None
        }
    }
}
