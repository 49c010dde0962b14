//! Headers that nobody would send.

use fenced::http::axum::body::Body;
use fenced::http::axum::http::{HeaderValue, Request, StatusCode};
use fenced::http::{FenceServer, Gate};
use tower::ServiceExt as _;

use crate::workshop;

const VALUES: usize = 100_000;
const NAMES: [&str; 3] = ["fencing-token", "idempotency-key", "content-digest"];
/// What values are made from: pieces of good ones, and any byte that a header may hold.
const PIECES: [&str; 24] = [
    "\"",
    "33",
    "\"33\"",
    ";",
    "r=",
    "\"/locks/benches/7\"",
    "=",
    ":",
    "YQ==",
    ":YQ==:",
    "@",
    "@17",
    "?1",
    "%\"",
    "%c3%a4",
    "\\",
    ",",
    " ",
    "-",
    "9999999999999999",
    "sha-256=",
    "mode=shared",
    "claimed",
    "kid=\"k\"",
];

/// A small generator with a seed, so that a run can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end).expect("a number");
        usize::try_from((z ^ (z >> 31)) % end).expect("a small number")
    }

    fn value(&mut self) -> HeaderValue {
        let mut bytes = Vec::new();
        for _ in 0..self.below(12) {
            match self.below(8) {
                0 => bytes.push(u8::try_from(self.below(256)).expect("a byte")),
                _ => bytes.extend_from_slice(PIECES[self.below(PIECES.len())].as_bytes()),
            }
        }
        bytes.retain(|byte| *byte == b'\t' || (*byte >= 0x20 && *byte != 0x7f));
        HeaderValue::from_bytes(&bytes).expect("a header's value")
    }
}

#[tokio::test]
async fn no_header_makes_it_panic_or_lets_a_stale_request_in() {
    let seed = std::env::var("FENCED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("FENCED_SEED={seed}");
    let gate = Gate::builder().in_memory();
    let newest = workshop::fence(1 << 50);
    fenced::FencingSink::claim(&gate, &newest)
        .await
        .expect("a claim");
    let (router, bench) = workshop::router(&FenceServer::new(gate));
    let mut random = Random(seed);
    let mut answers = std::collections::BTreeMap::new();
    for _ in 0..VALUES {
        let mut request = Request::post("/benches/7");
        if random.below(2) == 0 {
            request = request.header(NAMES[0], "\"33\"");
        }
        let name = NAMES[random.below(NAMES.len())];
        let request = request.header(name, random.value());
        let request = request.body(Body::from("x")).expect("a request");
        let shown = format!("{request:?}");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let status = answer.status();
        assert!(status.is_client_error(), "{status}: {shown}");
        *answers.entry(status.as_u16()).or_insert(0) += 1;
    }
    println!("{answers:?}");
    assert_eq!(bench.effects(), 0);
    for status in [StatusCode::BAD_REQUEST, StatusCode::PRECONDITION_FAILED] {
        assert!(
            answers.contains_key(&status.as_u16()),
            "{status} was never answered"
        );
    }
}
