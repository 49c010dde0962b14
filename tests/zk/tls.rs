//! Servers that speak TLS.

use std::time::{Duration, Instant};

use fenced::zookeeper::{ZkError, ZkLocks, ZkTls};
use fenced_tests::{Certificate, ZooKeeper};
use tokio::task::JoinSet;

use crate::setup::{Ground, acquire, path};

struct Secured {
    server: ZooKeeper,
    certificate: Certificate,
    ground: Ground,
}

impl Secured {
    async fn start() -> Self {
        let starting = tokio::task::spawn_blocking(|| {
            let certificate = Certificate::new()?;
            let server = ZooKeeper::options().secure(&certificate)?.start()?;
            std::io::Result::Ok((server, certificate))
        });
        let (server, certificate) = starting.await.unwrap().unwrap();
        let ground = Ground::on(server.address()).await;
        Self {
            server,
            certificate,
            ground,
        }
    }

    fn address(&self) -> String {
        self.server.secure_address().unwrap()
    }

    async fn locks(&self) -> ZkLocks {
        let tls = ZkTls::trusting(self.certificate.pem()).unwrap();
        let locks = self
            .ground
            .builder()
            .tls(tls)
            .connect(&self.address())
            .await;
        locks.expect("the server has that certificate")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_take_turns_over_tls() {
    let secured = Secured::start().await;
    let path = path("tls");
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let (locks, path) = (secured.locks().await, path.clone());
        workers.spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..10 {
                let lease = acquire(&locks, &path).await;
                tokens.push(lease.token());
                lease.release().await.unwrap();
            }
            tokens
        });
    }
    let mut tokens: Vec<_> = workers.join_all().await.concat();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 40);
    secured.ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn who_does_not_fit_together_is_told_in_time() {
    let secured = Secured::start().await;
    let other = tokio::task::spawn_blocking(Certificate::new).await;
    let other = other.unwrap().unwrap();
    let limit = Duration::from_secs(2);
    let builder = || secured.ground.builder().connect_timeout(limit);
    let trusting = |pem| builder().tls(ZkTls::trusting(pem).unwrap());
    for (builder, address) in [
        (builder(), secured.address()),
        (trusting(other.pem()), secured.address()),
        (
            trusting(secured.certificate.pem()),
            secured.server.address(),
        ),
    ] {
        let started = Instant::now();
        let error = builder.connect(&address).await.unwrap_err();
        assert!(matches!(error, ZkError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("TLS"), "{error}");
        assert!(started.elapsed() < limit * 2, "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn what_is_no_certificate_is_told_at_once() {
    let error = ZkTls::trusting("nothing").unwrap_err();
    assert!(matches!(error, ZkError::Options(_)), "{error}");
    let error = ZkLocks::connect("tcp+tls://127.0.0.1:1").await.unwrap_err();
    assert!(error.to_string().contains("asks for TLS"), "{error}");
}
