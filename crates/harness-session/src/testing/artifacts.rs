//! Contract of artifact stores.

use std::ops::Range;
use std::sync::Arc;

use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, Sensitivity};

const NOW: Time = Time(1_767_225_600_000);
const LATER: Time = Time(1_767_225_700_000);

/// Checks a store against the rules of the [`ArtifactStore`] port.
///
/// `make` gives a new, empty store each time. Call it in a test of your store, on any executor:
///
/// ```
/// # async fn test() {
/// use harness_session::artifact::MemoryArtifacts;
/// use harness_session::testing::artifact_contract;
///
/// artifact_contract(MemoryArtifacts::new).await;
/// # }
/// ```
///
/// # Panics
/// When a rule is broken; the text names it.
pub async fn artifact_contract<S: ArtifactStore>(mut make: impl FnMut() -> S) {
    bytes_come_back_exactly(&make()).await;
    a_range_is_cut_at_the_end(&make()).await;
    the_same_bytes_have_one_name(&make()).await;
    an_end_is_kept_to(&make()).await;
    what_is_restricted_is_its_owners(&make()).await;
    what_is_not_there_is_no_error(&make()).await;
}

async fn bytes_come_back_exactly(store: &impl ArtifactStore) {
    let large = vec![7; 300_000];
    for bytes in [&b""[..], b"text", b"\0\xff\r\n", &large] {
        let id = put(store, bytes, meta(None)).await;
        let digits = id.as_str().strip_prefix("sha256:").unwrap_or_default();
        assert_eq!(digits.len(), 64, "a name is sha256: and 64 digits: {id}");
        let mut known = meta(None);
        known.size = bytes.len() as u64;
        let whole = ArtifactPart::new(Arc::from(bytes), 0, known);
        let found = store.read(&id, 0..u64::MAX, None, NOW).await;
        assert_eq!(found, Ok(Some(whole)), "bytes come back exactly, with what is known of them");
    }
}

async fn a_range_is_cut_at_the_end(store: &impl ArtifactStore) {
    let id = put(store, b"0123456789", meta(None)).await;
    let cases: [(Range<u64>, &[u8], Range<u64>); 5] = [
        (2..4, b"23", 2..4),
        (8..20, b"89", 8..10),
        (10..12, b"", 10..10),
        (50..60, b"", 10..10),
        (4..4, b"", 4..4),
    ];
    for (range, bytes, found) in cases {
        let part = store.read(&id, range.clone(), None, NOW).await.ok().flatten();
        let part = part.map(|part| (part.bytes, part.range, part.meta.size));
        assert_eq!(part, Some((Arc::from(bytes), found, 10)), "the range {range:?}; the size is the whole's");
    }
}

async fn the_same_bytes_have_one_name(store: &impl ArtifactStore) {
    let first = put(store, b"same", meta(Some("a"))).await;
    assert_eq!(put(store, b"same", meta(Some("b"))).await, first, "the same bytes have one name");
    assert_ne!(put(store, b"other", meta(Some("a"))).await, first, "other bytes have a different id");
    for owner in ["a", "b"] {
        assert_eq!(seen(store, &first, Some(owner), NOW).await.as_deref(), Some(owner), "each holds it");
    }
    assert_eq!(store.delete(&first).await, Ok(true), "an artifact is removed");
    assert_eq!(seen(store, &first, Some("a"), NOW).await, None, "for all who held it");
    assert_eq!(store.delete(&first).await, Ok(false), "once");
    assert_eq!(put(store, b"same", meta(Some("a"))).await, first, "and can be stored again");
    assert_eq!(seen(store, &first, Some("a"), NOW).await.as_deref(), Some("a"), "and read");
}

async fn an_end_is_kept_to(store: &impl ArtifactStore) {
    let mut ends = meta(Some("a"));
    ends.expires_at = Some(LATER);
    let id = put(store, b"ends", ends.clone()).await;
    let before = Time(LATER.0 - 1);
    assert_eq!(seen(store, &id, Some("a"), before).await.as_deref(), Some("a"), "it is there until its end");
    assert_eq!(seen(store, &id, Some("a"), LATER).await, None, "and not after it");
    put(store, b"ends", meta(Some("b"))).await;
    assert_eq!(
        seen(store, &id, Some("b"), LATER).await.as_deref(),
        Some("b"),
        "a second holder still has it"
    );
    ends.expires_at = None;
    put(store, b"ends", ends).await;
    assert_eq!(seen(store, &id, Some("a"), LATER).await.as_deref(), Some("a"), "the later end counts");
}

async fn what_is_restricted_is_its_owners(store: &impl ArtifactStore) {
    let mut secret = meta(Some("a"));
    secret.sensitivity = Sensitivity::Restricted;
    let id = put(store, b"secret", secret).await;
    assert_eq!(seen(store, &id, Some("a"), NOW).await.as_deref(), Some("a"), "the owner reads it");
    assert_eq!(seen(store, &id, Some("b"), NOW).await, None, "no other session does");
    assert_eq!(seen(store, &id, None, NOW).await, None, "nor a caller without a session");
    put(store, b"secret", meta(Some("a"))).await;
    assert_eq!(seen(store, &id, Some("b"), NOW).await, None, "the stricter sensitivity counts");
    for sensitivity in [Sensitivity::Public, Sensitivity::Internal, Sensitivity::Confidential] {
        let mut shared = meta(Some("a"));
        shared.sensitivity = sensitivity;
        let id = put(store, format!("{sensitivity:?}").as_bytes(), shared).await;
        assert_eq!(
            seen(store, &id, Some("b"), NOW).await.as_deref(),
            Some("a"),
            "others are for all who ask"
        );
    }
}

async fn what_is_not_there_is_no_error(store: &impl ArtifactStore) {
    for id in [&*format!("sha256:{}", "0".repeat(64)), "sha256:../../etc/passwd", "sha256:", "", "md5:00"] {
        let id = ArtifactId::from(id);
        assert_eq!(store.read(&id, 0..1, None, NOW).await, Ok(None), "{id:?} is not there");
        assert_eq!(store.delete(&id).await, Ok(false), "{id:?} is not there to be removed");
    }
}

fn meta(owner: Option<&str>) -> ArtifactMeta {
    let mut meta = ArtifactMeta::default();
    meta.owner = owner.map(SessionId::from);
    meta.label.push_str("search c1");
    meta.created_at = NOW;
    meta
}

async fn put(store: &impl ArtifactStore, bytes: &[u8], meta: ArtifactMeta) -> ArtifactId {
    let id = store.put(bytes, meta).await;
    assert!(id.is_ok(), "bytes are stored: {id:?}");
    id.unwrap_or_else(|_| ArtifactId::from(""))
}

/// The owner of the entry that a session sees.
async fn seen(
    store: &impl ArtifactStore,
    id: &ArtifactId,
    requester: Option<&str>,
    now: Time,
) -> Option<String> {
    let requester = requester.map(SessionId::from);
    let part = store.read(id, 0..u64::MAX, requester.as_ref(), now).await;
    assert!(part.is_ok(), "a read works: {part:?}");
    part.ok().flatten().map(|part| part.meta.owner.map(|owner| owner.to_string()).unwrap_or_default())
}
