//! Nodes of ZooKeeper as what is written.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use async_trait::async_trait;
use fenced::testing::SinkUnderTest;
use fenced::zookeeper::{ZkFenced, ZkLocks, ZkSink, ZkWrite};
use fenced::{
    Fate, Fence, FencingSink, FencingToken, LossReason, OnLost, Outcome, Request, SinkError,
    section,
};
use fenced_tests::{Fault, Operation, Proxy};
use zookeeper_client::Error;

use crate::setup::Ground;

struct Subject {
    ground: Ground,
    sink: ZkSink,
}

impl Subject {
    async fn new() -> Self {
        let ground = Ground::shared().await;
        let sink = ground.locks().await.sink();
        Self { ground, sink }
    }
}

/// A node for each resource, whatever it is called.
fn counter(resource: &str) -> String {
    let mut hasher = DefaultHasher::new();
    resource.hash(&mut hasher);
    format!("/data/{:016x}", hasher.finish())
}

fn number(data: Option<&[u8]>) -> i64 {
    let text = data.and_then(|data| std::str::from_utf8(data).ok());
    text.map_or(0, |text| text.parse().expect("a number"))
}

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = ZkSink;

    fn sink(&self) -> &ZkSink {
        &self.sink
    }

    fn add(&self, resource: &str, amount: i64) -> ZkWrite {
        ZkWrite::update(counter(resource), move |data| {
            (number(data) + amount).to_string().into_bytes()
        })
    }

    fn set(&self, resource: &str, value: i64) -> ZkWrite {
        ZkWrite::put(counter(resource), value.to_string())
    }

    async fn value(&self, resource: &str) -> i64 {
        number(data(&self.ground, &counter(resource)).await.as_deref())
    }
}

fenced_core::sink_conformance!(async { Subject::new().await });

/// As anyone reads it.
async fn data(ground: &Ground, node: &str) -> Option<Vec<u8>> {
    ground.admin.sync("/").await.expect("a sync");
    match ground
        .admin
        .get_data(&format!("{}{node}", ground.root))
        .await
    {
        Ok((data, _)) => Some(data),
        Err(Error::NoNode) => None,
        Err(error) => panic!("{error}"),
    }
}

fn fence(token: i64) -> Fence {
    Fence::new(
        "/locks/config",
        FencingToken::try_from(token).expect("a token"),
    )
}

#[tokio::test]
async fn several_nodes_change_together_and_others_read_plain_data() {
    let Subject { ground, sink } = Subject::new().await;
    let write = ZkWrite::put("/config/deep/limits", "100").and(ZkWrite::put("/config/old", "1"));
    let answer = sink.write(&fence(1), &Request::new("r1", ""), write).await;
    assert_eq!(versions(answer), [0, 0]);
    let write = ZkWrite::update("/config/deep/limits", |old| {
        [old.unwrap_or_default(), b"!"].concat()
    })
    .and(ZkWrite::delete("/config/old"))
    .and(ZkWrite::delete("/config/never-there"));
    let answer = sink.write(&fence(1), &Request::new("r2", ""), write).await;
    assert_eq!(versions(answer), [1, -1, -1]);
    assert_eq!(
        data(&ground, "/config/deep/limits").await.as_deref(),
        Some(&b"100!"[..])
    );
    assert_eq!(data(&ground, "/config/old").await, None);
}

fn versions(answer: Result<Outcome<fenced::Answer>, SinkError>) -> Vec<i32> {
    let answer = answer.expect("a write").into_answer();
    answer.decode().expect("versions")
}

#[tokio::test]
async fn a_section_reads_behind_its_claim_and_a_stale_one_changes_nothing() {
    let Subject { ground, sink } = Subject::new().await;
    let locks = ground.locks().await;
    let stale = section(&locks, "/locks/config").on_lost(OnLost::Finish);
    let seen = stale
        .run(async |guard| {
            let config = guard.fence(&sink);
            assert_eq!(config.read("/config").await?, None);
            config
                .write(Request::new("r1", ""), ZkWrite::put("/config", "1"))
                .await?;
            assert_eq!(config.read("/config").await?.as_deref(), Some(&b"1"[..]));
            let newer = FencingToken::try_from(guard.token().get() + 1).expect("a token");
            sink.claim(&Fence::new("/locks/config", newer)).await?;
            let late = config.write(Request::new("r2", ""), ZkWrite::put("/config", "2"));
            assert!(matches!(late.await, Err(SinkError::Stale { .. })));
            Ok::<_, SinkError>(config.read("/config").await)
        })
        .await;
    let afterwards = seen.expect("a grant").expect("a section");
    assert!(
        matches!(&afterwards, Err(SinkError::Lost(loss)) if loss.reason == LossReason::RefusedBySink),
        "{afterwards:?}"
    );
    assert_eq!(data(&ground, "/config").await.as_deref(), Some(&b"1"[..]));
}

/// The transaction itself sees it, before the watch has told anybody.
#[tokio::test]
async fn a_holder_whose_contender_was_deleted_writes_nothing() {
    let ground = Ground::shared().await;
    let locks = ground.locks().await;
    let sink = locks.sink();
    let path = fenced::LockPath::new("/locks/config").expect("a path");
    let done = section(&locks, &path)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let config = guard.fence(&sink);
            config.claim().await?;
            let queue = ground.queue(&path).await;
            ground.delete(&path, &queue[0]).await;
            config
                .write(Request::new("r1", ""), ZkWrite::put("/config", "1"))
                .await
        });
    let written = done.await.expect("a grant");
    assert!(written.is_err(), "{written:?}");
    assert_eq!(data(&ground, "/config").await, None);
}

#[tokio::test]
async fn what_cannot_be_written_is_told_before_anything_is() {
    let Subject { ground, sink } = Subject::new().await;
    for (write, said) in [
        (ZkWrite::put("/fenced/base", "1"), "keeps its own"),
        (ZkWrite::put("config", "1"), "config"),
        (ZkWrite::put("/config/../x", "1"), ".."),
        (
            ZkWrite::put("/locks/a/x-lock-0000000001", "1"),
            "lock-0000000001",
        ),
        (ZkWrite::put("/config", vec![0; 1_000_001]), "split it"),
    ] {
        let error = sink.write(&fence(1), &Request::new("r1", ""), write).await;
        let error = error.expect_err("a bad write").to_string();
        assert!(error.contains(said), "{error}");
    }
    let nameless = Fence::new("", FencingToken::try_from(1_i64).expect("a token"));
    assert!(sink.claim(&nameless).await.is_err());
    assert_eq!(data(&ground, "/fenced/sink").await, None);
}

#[tokio::test]
async fn a_fence_that_cannot_be_read_admits_nobody() {
    let Subject { ground, sink } = Subject::new().await;
    sink.claim(&fence(1)).await.expect("a claim");
    let node = format!("{}/fenced/sink/fences/%2flocks%2fconfig", ground.root);
    ground
        .admin
        .set_data(&node, b"what", None)
        .await
        .expect("a change");
    let error = sink
        .claim(&fence(2))
        .await
        .expect_err("no fence")
        .to_string();
    assert!(error.contains("EXCLUSIVE SHARED"), "{error}");
}

#[tokio::test]
async fn collected_requests_are_gone_and_nothing_is_denied_of_them() {
    let Subject { sink, .. } = Subject::new().await;
    for (token, id) in [(1, "old"), (5, "new")] {
        let write = ZkWrite::put("/config", id);
        sink.write(&fence(token), &Request::new(id, ""), write)
            .await
            .expect("a write");
    }
    let below = FencingToken::try_from(5_i64).expect("a token");
    assert_eq!(sink.collect(below).await.expect("a collection"), 1);
    assert_eq!(sink.collect(below).await.expect("a collection"), 0);
    let ask = async |id, token| {
        sink.outcome(&Request::new(id, "").sent_under(fence(token)))
            .await
    };
    assert!(matches!(ask("new", 5).await, Ok(Fate::Applied(_))));
    assert!(matches!(ask("old", 1).await, Ok(Fate::Unknown)));
    sink.claim(&fence(9)).await.expect("a claim");
    assert!(matches!(ask("never", 5).await, Ok(Fate::Absent)));
}

#[tokio::test]
async fn a_lost_answer_is_ambiguous_and_its_fate_is_told() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(ground.server.as_str()).expect("a proxy");
    let locks: ZkLocks = ground.locks_at(&proxy.address()).await;
    let sink = locks.sink();
    sink.claim(&fence(1)).await.expect("a claim");
    let sprung = proxy.once(Fault::DropReply, |request| {
        request.operation == Operation::Multi
    });
    let request = Request::new("r1", "").sent_under(fence(1));
    let mine = fence(1);
    let (written, ()) = tokio::join!(
        sink.write(&mine, &request, ZkWrite::put("/config", "1")),
        async {
            sprung.happened().await;
            proxy.cut().await;
        }
    );
    assert!(
        matches!(written, Err(SinkError::Ambiguous { .. })),
        "{written:?}"
    );
    assert_eq!(data(&ground, "/config").await.as_deref(), Some(&b"1"[..]));
    let fate = sink.outcome(&request).await;
    assert!(matches!(fate, Ok(Fate::Applied(_))), "{fate:?}");
}
