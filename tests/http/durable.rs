//! What a gate remembers when its process starts again.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use fenced::http::{Effect, FileStore, FileStoreError, Gate, GateBuilder};
use fenced::{Fate, Fence, FencingSink, Mode, Outcome, SinkError};
use tempfile::TempDir;

use crate::counters::token;
use crate::workshop::{fence, request};

/// The file of one test.
struct Disk {
    _folder: TempDir,
    file: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("fences");
        Self {
            _folder: folder,
            file,
        }
    }

    async fn gate(&self) -> Gate {
        self.gate_with(|options| options).await
    }

    async fn gate_with(&self, options: impl FnOnce(GateBuilder) -> GateBuilder) -> Gate {
        let store = FileStore::open(&self.file).await.expect("a store");
        let gate = options(Gate::builder()).open(store).await;
        gate.expect("a gate")
    }

    fn bytes(&self) -> u64 {
        fs::metadata(&self.file).expect("a file").len()
    }
}

async fn write(gate: &Gate, token: i64, id: &str) -> Result<Outcome<fenced::Answer>, SinkError> {
    let effect = Effect::new(async { Ok("done") });
    gate.write(&fence(token), &request(id), effect).await
}

fn is_stale<T: std::fmt::Debug>(result: &Result<T, SinkError>, newest: i64) -> bool {
    matches!(result, Err(SinkError::Stale { current, .. }) if current.get() == newest)
}

#[tokio::test]
async fn fences_and_answers_outlive_the_process() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    gate.claim(&fence(34)).await.expect("a claim");
    write(&gate, 35, "r1").await.expect("a write");
    let mut reading = Fence::new("/read", token(7));
    reading.mode = Mode::Shared;
    gate.claim(&reading).await.expect("a claim");
    drop(gate);
    for _ in 0..2 {
        let gate = disk.gate().await;
        assert!(is_stale(&gate.claim(&fence(34)).await, 35));
        let again = write(&gate, 35, "r1").await.expect("an answer");
        assert!(again.is_replayed());
        let mut older = reading.clone();
        older.token = token(6);
        gate.claim(&older)
            .await
            .expect("readers do not fence each other");
        older.mode = Mode::Exclusive;
        assert!(is_stale(&gate.claim(&older).await, 7));
    }
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    let second = FileStore::open(&disk.file).await;
    assert!(
        matches!(second, Err(FileStoreError::InUse { .. })),
        "{second:?}"
    );
    drop(gate);
    disk.gate().await;
}

#[tokio::test]
async fn a_last_line_that_was_cut_off_is_dropped_at_any_byte() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    gate.claim(&fence(33)).await.expect("a claim");
    let whole = disk.bytes();
    gate.claim(&fence(34)).await.expect("a claim");
    drop(gate);
    let content = fs::read(&disk.file).expect("a file");
    for length in usize::try_from(whole).expect("a size")..content.len() {
        fs::write(&disk.file, &content[..length]).expect("a file");
        let gate = disk.gate().await;
        let current = gate.current(&fence(1).resource).await.expect("a token");
        assert_eq!(current, Some(token(33)), "cut off after {length} bytes");
        gate.claim(&fence(35)).await.expect("a claim");
        drop(gate);
        let gate = disk.gate().await;
        assert!(is_stale(&gate.claim(&fence(34)).await, 35));
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_told() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    for token in 33..36 {
        gate.claim(&fence(token)).await.expect("a claim");
    }
    drop(gate);
    let content = fs::read(&disk.file).expect("a file");
    for at in [0, 5, 17, 30] {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        fs::write(&disk.file, &damaged).expect("a file");
        let opened = FileStore::open(&disk.file).await;
        assert!(
            matches!(opened, Err(FileStoreError::Damaged { line: 1, .. })),
            "byte {at}: {opened:?}"
        );
    }
    fs::write(&disk.file, &content).expect("a file");
    disk.gate().await;
}

#[tokio::test]
async fn garbage_behind_the_end_is_dropped() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    gate.claim(&fence(33)).await.expect("a claim");
    drop(gate);
    let file = OpenOptions::new().append(true).open(&disk.file);
    let garbage = [&[0; 500][..], b"\n\xff\n0123456789abcdef []"].concat();
    file.expect("a file").write_all(&garbage).expect("garbage");
    let gate = disk.gate().await;
    let current = gate.current(&fence(1).resource).await.expect("a token");
    assert_eq!(current, Some(token(33)));
}

#[tokio::test]
async fn a_file_does_not_grow_for_ever() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    let long = "x".repeat(20_000);
    let mut greatest = 0;
    for number in 1..300 {
        let (text, id) = (long.clone(), format!("r{number}"));
        let effect = Effect::new(async move { Ok(text) });
        let written = gate.write(&fence(number), &request(&id), effect).await;
        written.expect("a write");
        gate.collect(token(number)).await.expect("a collection");
        greatest = greatest.max(disk.bytes());
    }
    assert!(greatest < 2 << 20, "{greatest} bytes");
    drop(gate);
    let gate = disk.gate().await;
    assert!(disk.bytes() < 50_000, "{} bytes", disk.bytes());
    assert!(
        write(&gate, 299, "r299")
            .await
            .expect("an answer")
            .is_replayed()
    );
}

#[tokio::test]
async fn what_was_collected_stays_refused() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    write(&gate, 33, "r1").await.expect("a write");
    gate.claim(&Fence::new("/newer", token(50)))
        .await
        .expect("a claim");
    let collected = gate.collect(token(40)).await.expect("a collection");
    assert_eq!((collected.fences, collected.requests), (1, 1));
    let sent = request("r1").sent_under(fence(33));
    assert_eq!(gate.outcome(&sent).await.expect("a fate"), Fate::Unknown);
    drop(gate);
    let gate = disk.gate().await;
    assert!(is_stale(&gate.claim(&fence(33)).await, 40));
    assert!(is_stale(
        &gate.claim(&Fence::new("/never/seen", token(39))).await,
        40
    ));
    gate.claim(&fence(41)).await.expect("a claim");
    assert_eq!(gate.outcome(&sent).await.expect("a fate"), Fate::Unknown);
}

#[tokio::test]
async fn a_reset_is_kept_with_its_reason() {
    let disk = Disk::new();
    let gate = disk.gate().await;
    gate.claim(&fence(1_000)).await.expect("a claim");
    let bench = fence(1).resource;
    let reset = gate
        .reset(&bench, token(5), "the ensemble was rebuilt")
        .await;
    reset.expect("a reset");
    gate.claim(&fence(6)).await.expect("a claim");
    drop(gate);
    for _ in 0..2 {
        let gate = disk.gate().await;
        assert!(is_stale(&gate.claim(&fence(5)).await, 6));
        let text = fs::read_to_string(&disk.file).expect("a file");
        assert!(text.contains("the ensemble was rebuilt"), "{text}");
    }
}

#[tokio::test]
async fn answers_expire_and_are_bounded() {
    let disk = Disk::new();
    let gate = disk.gate_with(|options| options.keep(Duration::ZERO)).await;
    write(&gate, 33, "r1").await.expect("a write");
    let sent = request("r1").sent_under(fence(33));
    // Expiry is by the second, and seen by the next one that is kept.
    let mut others = (2..).map(|number| format!("r{number}"));
    while matches!(gate.outcome(&sent).await, Ok(Fate::Applied(_))) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let id = others.next().expect("an id");
        write(&gate, 33, &id).await.expect("a write");
    }
    gate.claim(&fence(34)).await.expect("a claim");
    let fate = gate.outcome(&sent).await.expect("a fate");
    assert_eq!(
        fate,
        Fate::Unknown,
        "what has expired may have been applied"
    );

    let gate = Gate::builder().max_answer_bytes(1).in_memory();
    write(&gate, 33, "r1").await.expect("a write");
    let full = write(&gate, 33, "r2").await;
    assert!(matches!(full, Err(SinkError::Retry(_))), "{full:?}");
    assert!(
        write(&gate, 33, "r1")
            .await
            .expect("an answer")
            .is_replayed()
    );
    gate.collect(token(34)).await.expect("a collection");
    write(&gate, 34, "r2").await.expect("a write");
}

#[tokio::test]
async fn resources_are_bounded() {
    let gate = Gate::builder().max_resources(2).in_memory();
    let at = |name: &str, number| Fence::new(name, token(number));
    gate.claim(&at("/a", 1)).await.expect("a claim");
    gate.claim(&at("/b", 2)).await.expect("a claim");
    let full = gate.claim(&at("/c", 3)).await;
    assert!(matches!(full, Err(SinkError::Retry(_))), "{full:?}");
    gate.claim(&at("/a", 4))
        .await
        .expect("what is known is served");
    gate.collect(token(3)).await.expect("a collection");
    gate.claim(&at("/c", 3)).await.expect("a claim");
    assert!(is_stale(&gate.claim(&at("/b", 2)).await, 3));
}

#[tokio::test]
async fn an_effect_that_failed_half_way_is_not_denied() {
    let gate = Gate::builder().in_memory();
    let sent = request("r1").sent_under(fence(33));
    let effect = Effect::new(async { panic!("half way") as Result<(), SinkError> });
    let written = gate.write(&fence(33), &sent, effect).await;
    assert!(matches!(written, Err(SinkError::Backend(_))), "{written:?}");
    gate.claim(&fence(34)).await.expect("a claim");
    assert_eq!(gate.outcome(&sent).await.expect("a fate"), Fate::Unknown);
    let refused = request("r2").sent_under(fence(35));
    let effect = Effect::new(async { Err::<(), _>(SinkError::backend("did nothing")) });
    let written = gate.write(&fence(35), &refused, effect).await;
    assert!(written.is_err());
    gate.claim(&fence(36)).await.expect("a claim");
    assert_eq!(gate.outcome(&refused).await.expect("a fate"), Fate::Absent);
}

#[tokio::test]
async fn a_gate_without_a_store_has_a_floor() {
    let gate = Gate::builder().floor(token(40)).in_memory();
    assert!(is_stale(&gate.claim(&fence(39)).await, 40));
    gate.claim(&fence(40)).await.expect("a claim");
}
