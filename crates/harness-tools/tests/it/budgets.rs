//! The section `budgets` of registry files.

use std::path::Path;

use harness_tools::Registry;

use crate::support::environment;

/// What the section says: the budgets, or the faults with their places.
#[track_caller]
fn check(text: &str, expected: &str) {
    let text = format!("version: 1\nbudgets:\n{text}");
    let read = Registry::parse(&text, Path::new("tools.yaml"), &environment());
    let told = match read {
        Ok(registry) => {
            let budgets = registry.budgets().iter().map(|budget| {
                let (tokens, cost) = (budget.tokens, budget.cost.map(|cost| cost.to_string()));
                format!("{} {:?} {tokens:?} {cost:?} {}", budget.name, budget.per, budget.period)
            });
            budgets.collect::<Vec<_>>().join("\n")
        }
        Err(faults) => faults.to_string(),
    };
    assert_eq!(told, expected);
}

#[test]
fn budgets_carry_every_key() {
    let text = "  users: { per: user, tokens: 1000000, cost: 2.50 }
  tenants: { per: metadata.tenant, cost: 500, period: month }
  house: { tokens: 10, period: hour }
";
    let expected = "users User Some(1000000) Some(\"2.5\") day
tenants Metadata(\"tenant\") None Some(\"500\") month
house All Some(10) None hour";
    check(text, expected);
}

#[test]
fn faults_have_their_places() {
    check(
        "  users: { per: user }\n",
        "tools.yaml:3:3: no limit is set in the budget `users`; write `tokens` or `cost`",
    );
    check(
        "  a b: { tokens: 1 }\n  users: { per: tenant, cost: x, period: year, token: 1 }\n",
        "tools.yaml:3:3: invalid budget name `a b`; use a name without spaces and slashes
tools.yaml:4:17: budgets.users.per: `tenant` does not say whose work it is; write `user`, `all`, or `metadata.KEY` for a key of the thread's metadata
tools.yaml:4:31: budgets.users.cost must be an amount of money, not `x`; write US dollars, such as `2.50`
tools.yaml:4:42: budgets.users.period must be `hour`, `day` or `month`, not `year`
tools.yaml:4:48: unknown key `token` in budgets.users; did you mean `tokens`?",
    );
}
