//! Three servers that are one service.

use std::time::{Duration, Instant};

use fenced::zookeeper::ZkLocks;
use fenced::{Lease, LossReason};
use fenced_tests::Ensemble;

use crate::setup::{Ground, acquire, eventually, path, soon};

const TIMEOUT: Duration = Duration::from_secs(4);

async fn three() -> (Ensemble, Ground) {
    let ensemble = tokio::task::spawn_blocking(|| Ensemble::start(3)).await;
    let ensemble = ensemble.unwrap().unwrap();
    let ground = Ground::on(ensemble.addresses()).await;
    (ensemble, ground)
}

async fn leader(ensemble: &Ensemble) -> usize {
    eventually("a leader", async || ensemble.leader()).await
}

/// Releases what may have been lost, and takes the lock again on a higher token.
async fn follows(locks: &ZkLocks, name: &str, before: Lease) -> Lease {
    let token = before.token();
    // Lost or not: the next grant says that it is over.
    let _ = before.release().await;
    let next = acquire(locks, &path(name)).await;
    assert!(next.token() > token);
    next
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_and_a_follower_are_killed_and_come_back() {
    let (mut ensemble, ground) = three().await;
    let builder = ground.builder().session_timeout(Duration::from_secs(20));
    let locks = builder.connect(&ground.server).await.unwrap();
    let mut lease = acquire(&locks, &path("killed")).await;
    for kill_leader in [true, false] {
        let first = leader(&ensemble).await;
        let victim = if kill_leader { first } else { (first + 1) % 3 };
        tokio::task::block_in_place(|| ensemble.server_mut(victim).stop()).unwrap();
        leader(&ensemble).await;
        eventually("the lease confirmed", async || {
            (!lease.is_suspect() || lease.loss().is_some()).then_some(())
        })
        .await;
        // The session outlives any one server, and so does the lease if the others are soon ready.
        let lost = lease.loss().map(|loss| loss.reason);
        assert!(
            matches!(lost, None | Some(LossReason::DeadlinePassed)),
            "{lost:?}"
        );
        lease = follows(&locks, "killed", lease).await;
        tokio::task::block_in_place(|| ensemble.server_mut(victim).restart()).unwrap();
        lease = follows(&locks, "killed", lease).await;
    }
    lease.release().await.unwrap();
    ground.queue_of(&path("killed"), 0).await;
}

/// The holder's only server is cut off from the other two, which it does not know.
#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_of_a_minority_passes_before_the_majority_grants() {
    let (ensemble, ground) = three().await;
    let minority = leader(&ensemble).await;
    let majority = ensemble.server((minority + 1) % 3).address();
    let builder = || ground.builder().session_timeout(TIMEOUT);
    let holder = builder()
        .connect(&ensemble.server(minority).address())
        .await
        .unwrap();
    let other = builder().connect(&majority).await.unwrap();
    let path = path("minority");
    let held = acquire(&holder, &path).await;
    let cut = Instant::now();
    ensemble.cut_off(minority);
    let waiting = async {
        let next = acquire(&other, &path).await;
        assert!(held.loss().is_some(), "two holders");
        (next, cut.elapsed())
    };
    let losing = async {
        let loss = soon("the loss", held.lost()).await;
        (loss.reason, cut.elapsed())
    };
    let ((next, granted), (reason, lost)) = tokio::join!(waiting, losing);
    println!("lost after {lost:?}, granted to the next after {granted:?}");
    assert!(
        matches!(
            reason,
            LossReason::DeadlinePassed | LossReason::SessionExpired
        ),
        "{reason}"
    );
    assert!(
        lost < TIMEOUT + Duration::from_secs(1),
        "told after {lost:?}"
    );
    assert!(next.token() > held.token());
    next.release().await.unwrap();
    ensemble.rejoin(minority);
    let again = acquire(&holder, &path).await;
    again.release().await.unwrap();
}
