//! What operators see and do.

use std::time::Duration;

use fenced::zookeeper::{ContenderKind, InspectError};
use fenced::{LockError, LockRequest, LockService, LossReason};
use fenced_tests::{Proxy, Way, shared};
use zookeeper_client::{Acls, CreateMode, Error};

use crate::setup::{Ground, acquire, path, soon};

#[tokio::test]
async fn the_queue_is_shown_in_order_with_its_strangers() {
    let ground = Ground::shared().await;
    let holder = ground.builder().owner("billing/3\u{1b}[2J");
    let holder = holder.connect(&ground.server).await.unwrap();
    let (other, path) = (ground.locks().await, path("inspected"));
    let nobody = other.inspect(&path).await.unwrap();
    assert!(nobody.contenders.is_empty() && nobody.foreign.is_empty());
    let held = acquire(&holder, &path).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let stranger = format!("{}/000-note", ground.directory(&path));
    ground.admin.create(&stranger, b"", &options).await.unwrap();
    let waiting = acquire(&other, &path);
    let looking = async {
        ground.queue_of(&path, 3).await;
        let seen = holder.inspect(&path).await.unwrap();
        held.release().await.unwrap();
        seen
    };
    let (next, seen) = tokio::join!(waiting, looking);
    assert_eq!(seen.foreign, ["000-note"]);
    let [first, second] = &seen.contenders[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(first.kind, ContenderKind::Lock);
    assert_eq!(first.label.as_deref(), Some("billing/3[2J"));
    assert!(first.sequence < second.sequence);
    assert_eq!(second.czxid, next.token().get());
    assert!(first.session != second.session && first.age < Duration::from_mins(1));
}

#[tokio::test]
async fn breaking_a_lock_removes_the_very_one_and_is_written_down() {
    let ground = Ground::shared().await;
    let (holder, operator) = (ground.locks().await, ground.builder().owner("ops/anna"));
    let operator = operator.connect(&ground.server).await.unwrap();
    let path = path("broken");
    let held = acquire(&holder, &path).await;
    let czxid = held.token().get();
    let missed = operator
        .break_lock(&path, czxid + 1, "a typing error")
        .await;
    assert!(matches!(missed, Err(InspectError::NotThere { .. })));
    assert_eq!(held.loss(), None);
    let removed = operator
        .break_lock(&path, czxid, "its machine\nis lost")
        .await;
    assert_eq!(removed.unwrap().czxid, czxid);
    let loss = soon("the loss", held.lost()).await;
    assert_eq!(loss.reason, LossReason::NodeDeleted);
    let after = operator.inspect(&path).await.unwrap();
    assert!(after.contenders.is_empty());
    let [entry] = &after.broken[..] else {
        panic!("{after:?}");
    };
    for part in ["ops/anna", "its machineis lost", &czxid.to_string()] {
        assert!(entry.contains(part), "{entry}");
    }
}

#[tokio::test]
async fn strangers_may_look_and_nothing_else() {
    let ground = Ground::shared().await;
    let ours = ground.builder().digest("shop", "secret");
    let ours = ours.connect(&ground.server).await.unwrap();
    let (twin, path) = (ground.builder().digest("shop", "secret"), path("private"));
    let twin = twin.connect(&ground.server).await.unwrap();
    let held = acquire(&ours, &path).await;
    let queue = ground.queue(&path).await;
    let directory = ground.directory(&path);
    let node = format!("{directory}/{}", queue[0]);
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let admin = &ground.admin;
    admin.get_data(&node).await.unwrap();
    assert_eq!(admin.delete(&node, None).await, Err(Error::NoAuth));
    assert_eq!(admin.set_data(&node, b"", None).await, Err(Error::NoAuth));
    assert_eq!(admin.delete(&directory, None).await, Err(Error::NoAuth));
    for parent in [&directory, &ground.root] {
        let child = format!("{parent}/x-lock-0000000000");
        let added = admin.create(&child, b"", &options).await;
        assert!(matches!(added, Err(Error::NoAuth)), "below {parent}");
    }
    let stranger = ground.locks().await;
    let request = LockRequest::new(&path, Duration::from_secs(20));
    let refused = stranger.acquire(request).await;
    let error = refused.expect_err("the lock is somebody else's");
    assert!(matches!(error, LockError::Refused { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("check the user and the password"),
        "{error}"
    );
    let wrong = ground.builder().digest("shop", "guessed");
    let wrong = wrong.connect(&ground.server).await.unwrap();
    let request = LockRequest::new(&path, Duration::from_secs(20));
    let refused = wrong.acquire(request).await;
    assert!(matches!(refused, Err(LockError::Refused { .. })));
    let (next, released) = tokio::join!(acquire(&twin, &path), held.release());
    released.unwrap();
    next.release().await.unwrap();
}

#[tokio::test]
async fn hostile_entries_are_cut_and_cleaned() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("audited"));
    let held = acquire(&locks, &path).await;
    let czxid = held.token().get();
    locks
        .break_lock(&path, czxid, &"x".repeat(5_000))
        .await
        .unwrap();
    let folder = format!("{}/fenced/audit/%2Flocks%2Faudited", ground.root);
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let hostile = format!("\u{1b}[2J\u{202e}{}", "y\n".repeat(100_000));
    let node = format!("{folder}/9999999999");
    ground
        .admin
        .create(&node, hostile.as_bytes(), &options)
        .await
        .unwrap();
    let [own, hostile] = &locks.inspect(&path).await.unwrap().broken[..] else {
        panic!("two entries");
    };
    assert!(
        own.contains(&czxid.to_string()) && own.len() < 2_048,
        "{own}"
    );
    assert_eq!(hostile.len(), 2_048);
    assert!(hostile.starts_with("[2Jyyy"), "{hostile}");
}

#[tokio::test]
async fn an_operator_who_gets_no_answer_is_told_about_what() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let builder = ground.builder().connect_timeout(Duration::from_millis(500));
    let locks = builder.connect(&proxy.address()).await.unwrap();
    proxy.silence(Way::ToClient);
    let error = locks.inspect(&path("silent")).await.unwrap_err();
    assert!(matches!(error, InspectError::Failed { .. }), "{error}");
    for part in ["/locks/silent", "500.0ms"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(std::error::Error::source(&error).is_some());
}
