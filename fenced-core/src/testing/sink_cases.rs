//! The rules that a sink has to keep.
#![allow(missing_docs, reason = "each rule is named by its function")]

use std::borrow::Borrow;
use std::time::Duration;

use super::{SinkUnderTest, cancel_after};
use crate::{Fate, Fence, FencingSink, FencingToken, Outcome, Request, SinkError};

const SKU: &str = "/conformance/sku";

type AnswerOf<S> = <<S as SinkUnderTest>::Sink as FencingSink>::Answer;

fn fence(resource: &str, token: i64) -> Fence {
    let token = FencingToken::try_from(token).expect("a token");
    Fence::new(resource, token)
}

fn request(id: &str) -> Request {
    Request::new(id, &id)
}

async fn claim<S: SinkUnderTest>(subject: &S, token: i64) {
    let claimed = subject.sink().claim(&fence(SKU, token)).await;
    claimed.unwrap_or_else(|error| panic!("claim by {token}: {error}"));
}

/// Adds to the counter of [`SKU`], as often as the sink asks to repeat that.
async fn add<S: SinkUnderTest>(
    subject: &S,
    token: i64,
    id: &str,
    amount: i64,
) -> Result<Outcome<AnswerOf<S>>, SinkError> {
    let (fence, request) = (fence(SKU, token), request(id));
    loop {
        let write = subject.add(SKU, amount);
        match subject.sink().write(&fence, &request, write).await {
            Err(error) if error.is_retryable() => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            done => return done,
        }
    }
}

async fn write<S: SinkUnderTest>(
    subject: &S,
    fence: Fence,
    request: impl Borrow<Request> + Send,
    write: <S::Sink as FencingSink>::Write,
) -> Result<Outcome<AnswerOf<S>>, SinkError> {
    subject.sink().write(&fence, request.borrow(), write).await
}

fn assert_stale<T>(result: Result<T, SinkError>, older: i64, newer: i64) {
    match result {
        Err(SinkError::Stale { mine, current }) => {
            assert_eq!((mine.get(), current.get()), (older, newer));
        }
        Err(other) => panic!("not stale, but: {other}"),
        Ok(_) => panic!("token {older} was accepted after {newer}"),
    }
}

pub async fn a_newer_claim_makes_older_holders_stale(subject: &impl SinkUnderTest) {
    claim(subject, 33).await;
    claim(subject, 34).await;
    assert_stale(add(subject, 33, "r1", 1).await, 33, 34);
    assert_stale(subject.sink().claim(&fence(SKU, 33)).await, 33, 34);
    let claimed = fence(SKU, 33).claimed(true);
    let written = write(subject, claimed, request("r2"), subject.add(SKU, 1));
    assert_stale(written.await, 33, 34);
    assert_eq!(subject.value(SKU).await, 0);
    claim(subject, 34).await;
}

pub async fn a_refused_request_is_free_for_a_newer_holder(subject: &impl SinkUnderTest) {
    claim(subject, 34).await;
    assert_stale(add(subject, 33, "r1", 1).await, 33, 34);
    let first = add(subject, 34, "r1", 1).await.expect("a first write");
    assert!(
        !first.is_replayed(),
        "a refused write left its request behind"
    );
    assert_eq!(subject.value(SKU).await, 1);
}

pub async fn a_fence_outlives_a_pause(subject: &impl SinkUnderTest) {
    claim(subject, 34).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_stale(add(subject, 33, "r1", 1).await, 33, 34);
    assert_eq!(subject.value(SKU).await, 0);
}

pub async fn a_newer_write_makes_older_holders_stale(subject: &impl SinkUnderTest) {
    add(subject, 9, "r1", 1).await.expect("a first write");
    add(subject, 10, "r2", 1).await.expect("a newer write");
    assert_stale(add(subject, 9, "r3", 1).await, 9, 10);
    assert_eq!(subject.value(SKU).await, 2);
}

pub async fn a_holder_writes_as_often_as_it_likes(subject: &impl SinkUnderTest) {
    claim(subject, 33).await;
    for i in 0..20 {
        let done = add(subject, 33, &format!("r{i}"), 1)
            .await
            .expect("a write");
        assert!(!done.is_replayed());
    }
    assert_eq!(subject.value(SKU).await, 20);
}

pub async fn one_holder_writes_in_parallel(subject: &impl SinkUnderTest) {
    claim(subject, 33).await;
    let one = |i: usize| async move { add(subject, 33, &format!("r{i}"), 1).await.map(drop) };
    let all = tokio::join!(
        one(0),
        one(1),
        one(2),
        one(3),
        one(4),
        one(5),
        one(6),
        one(7)
    );
    let all = [all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7];
    for done in all {
        done.expect("a write");
    }
    assert_eq!(subject.value(SKU).await, 8);
}

pub async fn a_claim_ends_writes_in_flight(subject: &impl SinkUnderTest) {
    for round in 0..20_i64 {
        let (older, newer) = (2 * round + 1, 2 * round + 2);
        claim(subject, older).await;
        let before = subject.value(SKU).await;
        let claiming = async {
            claim_until_done(subject, newer).await;
            subject.value(SKU).await
        };
        let id = format!("r{round}");
        let (written, seen) = tokio::join!(add(subject, older, &id, 1), claiming);
        let after = subject.value(SKU).await;
        assert_eq!(after, seen, "a write landed after a newer claim");
        match written {
            Ok(_) => assert_eq!(after, before + 1, "a write was lost"),
            Err(SinkError::Stale { .. }) => assert_eq!(after, before, "a refused write landed"),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn claim_until_done<S: SinkUnderTest>(subject: &S, token: i64) {
    loop {
        match subject.sink().claim(&fence(SKU, token)).await {
            Ok(()) => return,
            Err(error) if error.is_retryable() => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("claim by {token}: {error}"),
        }
    }
}

pub async fn nothing_lands_between_a_claim_and_a_read(subject: &impl SinkUnderTest) {
    let set = |token, id: &'static str, value| async move {
        let write = subject.set(SKU, value);
        subject
            .sink()
            .write(&fence(SKU, token), &request(id), write)
            .await
    };
    claim(subject, 33).await;
    set(33, "stock", 100).await.expect("a first write");
    let seen_by_older = subject.value(SKU).await;
    claim(subject, 34).await;
    let seen_by_newer = subject.value(SKU).await;
    assert_stale(set(33, "older", seen_by_older - 1).await, 33, 34);
    set(34, "newer", seen_by_newer - 2)
        .await
        .expect("the newer holder's write");
    assert_eq!(subject.value(SKU).await, 98);
}

pub async fn a_repeated_request_is_replayed(subject: &impl SinkUnderTest) {
    let first = add(subject, 33, "r1", 5).await.expect("a write");
    let Outcome::Applied(answer) = first else {
        panic!("a first write was replayed")
    };
    for _ in 0..3 {
        let again = add(subject, 33, "r1", 5).await.expect("a repetition");
        assert_eq!(again, Outcome::Replayed(answer.clone()));
    }
    assert_eq!(subject.value(SKU).await, 5);
}

pub async fn a_newer_holder_gets_the_stored_answer(subject: &impl SinkUnderTest) {
    let first = add(subject, 33, "r1", 5).await.expect("a write");
    let again = add(subject, 34, "r1", 5).await.expect("a repetition");
    assert_eq!(again, Outcome::Replayed(first.into_answer()));
    assert_eq!(subject.value(SKU).await, 5);
}

pub async fn an_id_with_another_digest_is_a_mismatch(subject: &impl SinkUnderTest) {
    add(subject, 33, "r1", 5).await.expect("a write");
    let other = Request::new("r1", &"another payload");
    let written = write(subject, fence(SKU, 33), &other, subject.add(SKU, 7));
    let error = written.await.expect_err("a mismatch");
    assert!(
        matches!(error, SinkError::RequestMismatch { .. }),
        "{error}"
    );
    let error = subject
        .sink()
        .outcome(&other)
        .await
        .expect_err("a mismatch");
    assert!(
        matches!(error, SinkError::RequestMismatch { .. }),
        "{error}"
    );
    assert_eq!(subject.value(SKU).await, 5);
}

pub async fn a_bad_request_is_refused(subject: &impl SinkUnderTest) {
    let long = "x".repeat(Request::MAX_ID_BYTES + 1);
    for id in ["", "a\0b", &long] {
        let bad = request(id);
        let written = write(subject, fence(SKU, 33), &bad, subject.add(SKU, 1));
        let error = written.await.expect_err("a bad id");
        assert!(matches!(error, SinkError::InvalidRequest { .. }), "{error}");
        let error = subject.sink().outcome(&bad).await.expect_err("a bad id");
        assert!(matches!(error, SinkError::InvalidRequest { .. }), "{error}");
    }
    assert_eq!(subject.value(SKU).await, 0);
}

pub async fn twins_have_one_effect(subject: &impl SinkUnderTest) {
    for round in 0..10 {
        let id = format!("r{round}");
        let twin = || add(subject, 33, &id, 1);
        let (a, b, c) = tokio::join!(twin(), twin(), twin());
        let outcomes = [a, b, c].map(|twin| twin.expect("a twin"));
        let applied = outcomes.iter().filter(|twin| !twin.is_replayed()).count();
        assert_eq!(applied, 1, "{outcomes:?}");
        let [a, b, c] = outcomes.map(Outcome::into_answer);
        assert!(a == b && b == c, "twins got other answers");
        assert_eq!(subject.value(SKU).await, round + 1);
    }
}

pub async fn a_stale_repetition_is_stale(subject: &impl SinkUnderTest) {
    add(subject, 33, "r1", 5).await.expect("a write");
    claim(subject, 34).await;
    assert_stale(add(subject, 33, "r1", 5).await, 33, 34);
}

pub async fn the_outcome_is_told_to_anyone(subject: &impl SinkUnderTest) {
    let older = fence(SKU, 33);
    claim(subject, 33).await;
    let sent = |id| request(id).sent_under(older.clone());
    let ask = |request: Request| async move { subject.sink().outcome(&request).await };
    assert_eq!(ask(sent("r1")).await.expect("a fate"), Fate::Unknown);
    let answer = add(subject, 33, "r1", 5)
        .await
        .expect("a write")
        .into_answer();
    assert_eq!(
        ask(sent("r1")).await.expect("a fate"),
        Fate::Applied(answer.clone())
    );
    claim(subject, 34).await;
    assert_eq!(
        ask(sent("r1")).await.expect("a fate"),
        Fate::Applied(answer.clone())
    );
    assert_eq!(
        ask(request("r1")).await.expect("a fate"),
        Fate::Applied(answer)
    );
    assert_eq!(ask(sent("r2")).await.expect("a fate"), Fate::Absent);
    assert_eq!(ask(request("r2")).await.expect("a fate"), Fate::Unknown);
}

pub async fn a_cancelled_write_happens_wholly_or_not_at_all(subject: &impl SinkUnderTest) {
    for polls in 0.. {
        let before = subject.value(SKU).await;
        let token = i64::try_from(2 * polls + 1).expect("few polls");
        let (older, request) = (fence(SKU, token), request(&format!("r{polls}")));
        let write = subject.sink().write(&older, &request, subject.add(SKU, 1));
        let finished = cancel_after(polls, write).await;
        claim_until_done(subject, token + 1).await;
        let fate = subject.sink().outcome(&request.sent_under(older)).await;
        let after = subject.value(SKU).await;
        match fate.expect("a fate") {
            Fate::Applied(_) => assert_eq!(after, before + 1, "cancelled after {polls} polls"),
            Fate::Absent => assert_eq!(after, before, "cancelled after {polls} polls"),
            Fate::Unknown => panic!("unknown although a newer holder has claimed"),
        }
        if finished.is_ok() {
            println!("await points: {polls}");
            break;
        }
    }
}

pub async fn a_cancelled_claim_harms_nobody(subject: &impl SinkUnderTest) {
    for polls in 0.. {
        let token = i64::try_from(polls + 1).expect("few polls");
        let older = fence(SKU, token);
        let finished = cancel_after(polls, subject.sink().claim(&older)).await;
        claim_until_done(subject, token).await;
        let id = format!("r{polls}");
        add(subject, token, &id, 1)
            .await
            .expect("a write after a claim");
        if finished.is_ok() {
            break;
        }
    }
}

pub async fn tokens_are_compared_over_their_whole_range(subject: &impl SinkUnderTest) {
    let rising = [
        1,
        9,
        10,
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    for (older, newer) in rising.iter().zip(&rising[1..]) {
        claim(subject, *older).await;
        claim(subject, *newer).await;
        assert_stale(add(subject, *older, "r1", 1).await, *older, *newer);
    }
    add(subject, i64::MAX, "r1", 1)
        .await
        .expect("the greatest token");
    assert_eq!(subject.value(SKU).await, 1);
}

pub async fn resources_are_apart(subject: &impl SinkUnderTest) {
    claim(subject, 34).await;
    let other = "/conformance/other";
    let written = write(
        subject,
        fence(other, 33),
        request("r1"),
        subject.add(other, 1),
    );
    written
        .await
        .expect("a write to another resource")
        .into_answer();
    assert_eq!(
        (subject.value(SKU).await, subject.value(other).await),
        (0, 1)
    );
}

pub async fn odd_names_are_distinct(subject: &impl SinkUnderTest) {
    let long = format!("/{}", "x".repeat(999));
    let names = [
        "/a",
        "/A",
        "/a ",
        "/%61",
        "/'; DROP TABLE t; --",
        "/\"",
        "/\\",
        "/ä",
        "/{a}:1",
        &long,
    ];
    for (i, name) in (1..).zip(names) {
        let id = format!("{name:.100}");
        let written = write(subject, fence(name, i), request(&id), subject.add(name, i));
        written
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .into_answer();
    }
    for (i, name) in (1..).zip(names) {
        assert_eq!(subject.value(name).await, i, "{name}");
    }
}
