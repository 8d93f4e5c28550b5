//! Tests of budgets.

use super::*;

fn calls(n: u32) -> Amount {
    Amount { tool_calls: n, ..Amount::NONE }
}

#[test]
fn reservation_holds_on_every_level_or_on_none() {
    let mut budgets = Budgets::default();
    budgets.push(Budget::new(calls(3), None));
    budgets.push(Budget::new(calls(5), None));
    let grant = budgets.reserve(calls(2)).expect("room");
    let reached = budgets.reserve(calls(2)).expect_err("the outer level is full");
    assert_eq!(reached, Reached::new(Limit::ToolCalls, 2, 3));
    budgets.settle(grant, calls(1));
    assert_eq!(budgets.left().tool_calls, 2);
}

#[test]
fn law_3_exactly_n_fit() {
    for n in [0, 1, 7] {
        let mut budgets = Budgets::default();
        budgets.push(Budget::new(calls(n), None));
        let ran = (0..n + 2).filter(|_| budgets.reserve(calls(1)).is_ok()).count();
        assert_eq!(ran, n as usize);
    }
}

#[test]
fn law_3_a_share_leaves_something() {
    let mut budgets = Budgets::default();
    budgets.push(Budget::new(calls(6), None));
    assert_eq!(budgets.reserve_share(calls(1), calls(3)), Ok(Grant(calls(4))));
    assert_eq!(budgets.reserve_share(calls(1), calls(3)), Ok(Grant(calls(2))), "one of three is left");
    let reached = Reached::new(Limit::ToolCalls, 6, 6);
    assert_eq!(budgets.reserve_share(calls(1), Amount::NONE), Err(reached));
    budgets.settle(Grant(calls(2)), calls(1));
    assert_eq!(budgets.reserve_share(calls(1), calls(3)).map_err(|r| r.value), Err(5), "nothing to share");
    assert_eq!(budgets.reserve_share(calls(1), Amount::NONE), Ok(Grant(calls(1))));
}

#[test]
fn law_3_a_held_grant_counts_on_its_own_levels_until_it_is_settled() {
    let (mut budgets, mut held) = (Budgets::default(), HeldGrants::default());
    budgets.push(Budget::new(calls(10), None));
    budgets.push(Budget::new(calls(6), None));
    let grant = budgets.reserve(calls(4)).expect("room");
    held.keep("c1".into(), grant, &budgets);
    assert_eq!(budgets.left().tool_calls, 2);
    budgets.pop();
    held.level_gone(&budgets);
    budgets.push(Budget::new(calls(6), None));
    assert_eq!(budgets.left().tool_calls, 6, "the next turn has a level of its own");
    let stored = serde_json::to_string(&held).expect("JSON");
    let mut held: HeldGrants = serde_json::from_str(&stored).expect("its own form");
    held.settle(&"c1".into(), calls(1), &mut budgets);
    held.settle(&"c1".into(), calls(1), &mut budgets);
    assert_eq!(budgets.left().tool_calls, 6, "it is settled once, and not on the new level");
    budgets.pop();
    assert_eq!(budgets.left().tool_calls, 9);
}

#[test]
fn rest_is_what_every_level_grants() {
    let amounts = [Amount::NONE, calls(1), calls(3), Amount { tokens: 4, cost: Cost(2), ..calls(1) }];
    let mut budgets = Budgets::default();
    budgets.push(Budget::new(Amount { tool_calls: 9, ..Amount::UNLIMITED }, Some(Time(9))));
    budgets.push(Budget::new(Amount { tokens: 11, ..Amount::UNLIMITED }, Some(Time(7))));
    let mut grants = Vec::new();
    for want in amounts.into_iter().cycle().take(24) {
        let left = budgets.left();
        assert_eq!(
            budgets.would_reach(want).is_none(),
            want.minus(left) == Amount::NONE,
            "{want:?} {left:?}"
        );
        grants.extend(budgets.reserve(want));
        if let (3.., Some(grant)) = (grants.len(), grants.pop()) {
            budgets.settle(grant, Amount { tokens: 2, ..calls(1) });
        }
    }
    assert_eq!((budgets.deadline(), budgets.left().tool_calls), (Some(Time(7)), 0));
}

#[test]
fn empty_reservation_is_never_limited() {
    let mut budgets = Budgets::default();
    budgets.push(Budget::new(Amount::NONE, None));
    assert_eq!(budgets.reserve(Amount::NONE), Ok(Grant(Amount::NONE)));
    assert!(budgets.spent().is_some(), "a ceiling of zero is used up before the first call");
}
