//! Servers that would not keep fences and requests are refused at the start.

use fenced::redis::{CheckError, RedisSink};
use fenced_tests::Redis;

use crate::server::{ask, connect};

async fn sink(server: &Redis) -> RedisSink {
    RedisSink::new(connect(&server.url()).await)
}

#[tokio::test]
async fn a_policy_that_drops_keys_is_refused() {
    let server = Redis::start().expect("a server");
    let sink = sink(&server).await;
    sink.check().await.expect("the usual policy drops nothing");
    for (policy, lost) in [
        ("allkeys-lru", "fences"),
        ("allkeys-random", "fences"),
        ("volatile-lru", "requests"),
        ("volatile-ttl", "requests"),
    ] {
        ask::<()>(
            &connect(&server.url()).await,
            &["CONFIG", "SET", "maxmemory-policy", policy],
        )
        .await;
        let error = sink.check().await.expect_err("it drops keys");
        assert!(
            matches!(&error, CheckError::Evicts { policy: told, .. } if told == policy),
            "{error}"
        );
        assert!(
            error.to_string().contains(&format!("drop {lost}")),
            "{error}"
        );
        let error = RedisSink::connect(connect(&server.url()).await).await;
        assert!(matches!(error, Err(CheckError::Evicts { .. })), "{error:?}");
        sink.clone()
            .warn_of_eviction()
            .check()
            .await
            .expect("a warning");
    }
}

/// As with a provider who forbids `CONFIG`, or renames it away.
#[tokio::test]
async fn one_of_info_and_config_is_enough() {
    let options = Redis::options().setting("maxmemory-policy", "allkeys-lru");
    let server = options.start().expect("a server");
    let admin = connect(&server.url()).await;
    let rights = [
        ("both", vec!["+@all"], true),
        ("info", vec!["+@all", "-config"], true),
        ("config", vec!["+@all", "-info"], true),
        ("none", vec!["+@all", "-info", "-config"], false),
    ];
    for (user, rules, told) in rights {
        let rules = [vec!["ACL", "SETUSER", user, "on", ">secret", "~*"], rules].concat();
        ask::<()>(&admin, &rules).await;
        let url = server
            .url()
            .replace("redis://", &format!("redis://{user}:secret@"));
        let sink = RedisSink::new(connect(&url).await);
        let error = sink
            .check()
            .await
            .expect_err("it drops keys, or does not say");
        assert_eq!(
            matches!(error, CheckError::Evicts { .. }),
            told,
            "{user}: {error}"
        );
        assert_eq!(
            matches!(error, CheckError::Secretive),
            !told,
            "{user}: {error}"
        );
        sink.warn_of_eviction().check().await.expect("a warning");
    }
}

#[tokio::test]
async fn a_replica_is_refused() {
    let master = Redis::start().expect("a server");
    let replica = master.replica().expect("a replica");
    sink(&master).await.check().await.expect("a master");
    let error = sink(&replica).await.check().await;
    assert!(matches!(error, Err(CheckError::Replica)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_gone_cannot_be_asked() {
    let mut server = Redis::start().expect("a server");
    let sink = sink(&server).await;
    server.stop().expect("a stop");
    let error = sink.check().await;
    assert!(matches!(error, Err(CheckError::Failed(_))), "{error:?}");
}
