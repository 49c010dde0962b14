//! What goes wrong without a claim, or with a check apart from the write; two holders each.

use fenced::redis::{RedisBatch, RedisFenced};
use fenced::{Fenced, FencingSink, SinkError};

use crate::holder::holder;
use crate::server::{Server, fence, request, token};

type Stock<'g> = Fenced<'g, fenced::redis::RedisSink>;

async fn read(stock: Stock<'_>, server: &Server) -> i64 {
    let count = stock.get(server.key("count")).await.expect("a read");
    let count = count.expect("a count");
    String::from_utf8(count)
        .expect("text")
        .parse()
        .expect("a number")
}

async fn set(stock: Stock<'_>, server: &Server, count: i64) -> Result<[i64; 1], SinkError> {
    let batch = RedisBatch::new().set(server.key("count"), count.to_string());
    stock.apply(batch).await
}

fn assert_stale<T: std::fmt::Debug>(result: Result<T, SinkError>) {
    match result {
        Err(SinkError::Stale { mine, current }) => {
            assert_eq!((mine, current), (token(33), token(34)));
        }
        other => panic!("33 after 34: {other:?}"),
    }
}

async fn stocked() -> Server {
    let server = Server::new().await;
    server
        .ask::<()>(&["SET", &server.key("count"), "100"])
        .await;
    server
}

/// R1: the older holder's write, which would be valid on its own, lands between the newer one's
/// read and write, unless that read has raised the fence.
#[tokio::test]
async fn nothing_older_lands_between_a_read_and_a_write() {
    let server = stocked().await;
    holder(33, async |old| {
        let old = old.fence(&server.sink);
        let seen_by_old = read(old, &server).await;
        holder(34, async |new| {
            let new = new.fence(&server.sink);
            let seen_by_new = read(new, &server).await;
            assert_stale(set(old, &server, seen_by_old - 10).await);
            set(new, &server, seen_by_new - 1).await.expect("a write");
        })
        .await;
        assert!(
            matches!(old.fence(), Err(SinkError::Lost(_))),
            "a stale answer ends the lease"
        );
    })
    .await;
    assert_eq!(server.count("count").await, 99);
}

/// S1: of an older write and a newer claim at once, the write is before the claim, or nowhere.
#[tokio::test]
async fn an_older_write_is_before_a_newer_claim_or_refused() {
    let server = stocked().await;
    for round in 0..100 {
        let (older, newer) = (2 * round + 1, 2 * round + 2);
        server.sink.claim(&fence(older)).await.expect("a claim");
        let before = server.count("count").await;
        let id = request(&format!("r{round}"));
        let older = fence(older).claimed(true);
        let writing = server
            .sink
            .write(&older, &id, server.add("count", 1).into());
        let claiming = async {
            server.sink.claim(&fence(newer)).await.expect("a claim");
            server.count("count").await
        };
        let (written, seen) = if round % 2 == 0 {
            tokio::join!(writing, claiming)
        } else {
            let (seen, written) = tokio::join!(claiming, writing);
            (written, seen)
        };
        let expected = before + i64::from(written.is_ok());
        assert_eq!((seen, server.count("count").await), (expected, expected));
    }
}

/// C3: the older holder is late at another key of the resource than the newer one has written.
#[tokio::test]
async fn a_fence_is_of_the_resource_and_not_of_a_key() {
    let server = stocked().await;
    holder(33, async |old| {
        let old = old.fence(&server.sink);
        old.apply::<[i64; 1]>(server.add("a", 1))
            .await
            .expect("a write");
        holder(34, async |new| {
            let new = new.fence(&server.sink);
            new.apply::<[i64; 1]>(server.add("b", 1))
                .await
                .expect("a write");
        })
        .await;
        assert_stale(old.apply::<[i64; 1]>(server.add("c", 1)).await);
    })
    .await;
    assert_eq!(server.count("c").await, 0);
}

/// C4, D5: data that is deleted, or expires, does not take its fence along.
#[tokio::test]
async fn deleted_data_keeps_its_fence() {
    let server = stocked().await;
    holder(33, async |old| {
        let old = old.fence(&server.sink);
        old.claim().await.expect("a claim");
        holder(34, async |new| {
            let new = new.fence(&server.sink);
            let delete = RedisBatch::new().del(server.key("count"));
            new.apply::<[i64; 1]>(delete).await.expect("a deletion");
        })
        .await;
        assert_stale(set(old, &server, 100).await);
    })
    .await;
    assert_eq!(server.count("count").await, 0);
}

/// I11: the newest holder repeats what an older one did, and it is done once.
#[tokio::test]
async fn a_request_has_one_effect_whoever_repeats_it() {
    let server = stocked().await;
    let sell = || server.add("count", -1);
    let sent = request("order-17");
    holder(33, async |old| {
        let old = old.fence(&server.sink);
        let first = old.run::<[i64; 1]>(&sent, sell()).await.expect("a sale");
        assert!(!first.is_replayed());
        holder(34, async |new| {
            let new = new.fence(&server.sink);
            let again = new.run::<[i64; 1]>(&sent, sell()).await.expect("a replay");
            assert!(again.is_replayed());
            assert_eq!(again.into_answer(), [99]);
        })
        .await;
        // A replay raises the fence as well.
        assert_stale(old.run::<[i64; 1]>(&sent, sell()).await);
    })
    .await;
    let fate = server.sink.outcome(&sent).await.expect("a fate");
    assert!(matches!(fate, fenced::Fate::Applied(answer) if answer.as_json() == "[99]"));
    assert_eq!(server.count("count").await, 99);
}
