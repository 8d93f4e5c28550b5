use harness_core::Time;

use super::*;

/// An operation on a ledger.
enum Do<'a> {
    Add(&'a str, ItemRole),
    Set(&'a str, ItemStatus),
    Store(&'a str, &'a str),
    Flag(&'a str, &'a str),
}
use Do::{Add, Flag, Set, Store};

const FAILED: &str =
    r#"{"verdict":"fail","checks":[{"name":"sum","result":"fail","detail":""}],"summary":"off"}"#;

fn ledger(steps: &[Do<'_>]) -> WorkLedger {
    let (mut ledger, limits) = (WorkLedger::default(), WorkLimits::default());
    for step in steps {
        let done = match step {
            Add(title, role) => {
                let item = NewItem { title: (*title).to_owned(), role: *role, ..NewItem::default() };
                ledger.add(item, Time(0), &limits).map(drop)
            }
            Set(id, status) => ledger.update(&(*id).into(), *status, "", Time(0), &limits),
            Store(id, text) => ledger.store(&(*id).into(), text, None, Time(0), &limits).map(drop),
            Flag(id, reason) => ledger.flag_revision(&(*id).into(), reason, Time(0), &limits).map(drop),
        };
        done.expect("the step is legal");
    }
    ledger
}

/// The items, then the incomplete, delivered and failed ones.
#[track_caller]
fn check(steps: &[Do<'_>], expected: &str) {
    let ledger = ledger(steps);
    let items: Vec<_> = ledger.items().iter().map(ToString::to_string).collect();
    let open: Vec<_> = ledger.incomplete().map(|item| item.id.as_str()).collect();
    let given: Vec<_> = ledger.deliverables().into_iter().map(|given| given.content).collect();
    let failed: Vec<_> = ledger.failed_audits().into_iter().flat_map(|audit| audit.failed_checks).collect();
    let shown = format!("{}\nopen {open:?} given {given:?} failed {failed:?}", items.join("\n"));
    assert_eq!(shown, expected);
}

#[test]
fn finished_revision_replaces_the_artifact() {
    let before = [
        Add("Draft", ItemRole::Deliverable),
        Store("00000001", "v1"),
        Set("00000001", ItemStatus::Done),
        Flag("00000001", "wrong year"),
        Store("00000002", "v2"),
    ];
    check(
        &before,
        "[x] [00000001] Draft [NEEDS REVISION]\n\
         [ ] [00000002] Revise: Draft (high) (revision of 00000001)\n\
         open [\"00000002\", \"00000001\"] given [\"v1\", \"v2\"] failed []",
    );
    let after: Vec<_> = before.into_iter().chain([Set("00000002", ItemStatus::Done)]).collect();
    check(
        &after,
        "[x] [00000001] Draft\n[x] [00000002] Revise: Draft (high) (revision of 00000001)\n\
         open [] given [\"v2\"] failed []",
    );
}

#[test]
fn skipped_revision_keeps_the_artifact() {
    check(
        &[
            Add("Draft", ItemRole::Deliverable),
            Store("00000001", "v1"),
            Set("00000001", ItemStatus::Done),
            Flag("00000001", "style"),
            Set("00000002", ItemStatus::Skipped),
        ],
        "[x] [00000001] Draft\n[-] [00000002] Revise: Draft (high) (revision of 00000001)\n\
         open [] given [\"v1\"] failed []",
    );
}

#[test]
fn failed_audit_is_answered_only_by_a_later_revision() {
    let audit = [
        Add("Table", ItemRole::Deliverable),
        Add("Audit", ItemRole::Control),
        Flag("00000001", "an earlier thing"),
        Store("00000002", FAILED),
        Set("00000002", ItemStatus::Done),
        Set("00000001", ItemStatus::Done),
        Set("00000003", ItemStatus::Done),
    ];
    assert_eq!(ledger(&audit).failed_audits().len(), 1);
    let answered: Vec<_> = audit.into_iter().chain([Flag("00000001", "the sum")]).collect();
    assert_eq!(ledger(&answered).failed_audits(), []);
}

#[test]
fn role_of_an_item_stays_when_none_is_given() {
    let (mut ledger, limits) = (ledger(&[Add("Audit", ItemRole::Control)]), WorkLimits::default());
    let fault = ledger.store(&"00000001".into(), "no report", None, Time(0), &limits);
    assert!(matches!(fault, Err(WorkFault::Audit(_))), "a control item needs a report");
    assert_eq!(ledger.items()[0].artifact, "");
}

#[test]
fn every_bound_holds_and_changes_nothing() {
    let limits = WorkLimits { items: 1, text: 8, artifact: 4, artifacts: 4 };
    let mut ledger = WorkLedger::default();
    let item = |title: &str| NewItem { title: title.to_owned(), ..NewItem::default() };
    assert_eq!(ledger.add(item(" "), Time(0), &limits), Err(WorkFault::NoTitle));
    assert!(matches!(ledger.add(item("too long a title"), Time(0), &limits), Err(WorkFault::TooLong { .. })));
    let id = ledger.add(item("A"), Time(0), &limits).expect("fits");
    let before = ledger.clone();
    assert_eq!(ledger.add(item("B"), Time(0), &limits), Err(WorkFault::TooMany { most: 1 }));
    assert!(matches!(ledger.store(&id, "12345", None, Time(0), &limits), Err(WorkFault::TooLong { .. })));
    assert!(matches!(
        ledger.update(&"x".into(), ItemStatus::Done, "", Time(0), &limits),
        Err(WorkFault::Unknown { .. })
    ));
    assert_eq!(ledger.flag_revision(&id, "r", Time(0), &limits), Err(WorkFault::TooMany { most: 1 }));
    assert_eq!(ledger, before);
}

#[test]
fn ledger_survives_a_round_trip() {
    let ledger = ledger(&[
        Add("A", ItemRole::Deliverable),
        Store("00000001", "Let me see:\n1"),
        Flag("00000001", "r"),
    ]);
    let text = serde_json::to_string(&ledger).expect("JSON");
    assert_eq!(serde_json::from_str::<WorkLedger>(&text).expect("a ledger"), ledger);
}
