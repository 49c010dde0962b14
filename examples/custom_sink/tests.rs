use std::io::Write;

use async_trait::async_trait;
use fenced::testing::SinkUnderTest;
use fenced::{Fence, FencingSink, FencingToken, Request, SinkError};
use tempfile::TempDir;

use crate::journal::Journal;
use crate::line::Movement;

struct Subject {
    journal: Journal,
    folder: TempDir,
}

impl Subject {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(&folder.path().join("journal")).expect("a journal");
        Self { journal, folder }
    }

    /// As another process opens it.
    fn again(&self) -> Journal {
        Journal::open(&self.folder.path().join("journal")).expect("a journal")
    }
}

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = Journal;

    fn sink(&self) -> &Journal {
        &self.journal
    }

    fn add(&self, _resource: &str, amount: i64) -> Movement {
        Movement::Add(amount)
    }

    fn set(&self, _resource: &str, value: i64) -> Movement {
        Movement::Set(value)
    }

    async fn value(&self, resource: &str) -> i64 {
        self.again().count(resource).await.expect("a count")
    }
}

fenced::sink_conformance!(async { Subject::new() });

fn fence(token: i64) -> Fence {
    Fence::new("/shelf", FencingToken::try_from(token).expect("a token"))
}

async fn add(journal: &Journal, token: i64, id: &str) -> Result<i64, SinkError> {
    let (fence, request) = (fence(token), Request::new(id, &id));
    let moved = journal.write(&fence, &request, Movement::Add(1));
    Ok(moved.await?.into_answer())
}

#[tokio::test]
async fn the_fence_is_that_of_all_processes() {
    let subject = Subject::new();
    let other = subject.again();
    assert_eq!(add(&subject.journal, 33, "r1").await.expect("a count"), 1);
    assert_eq!(add(&other, 34, "r2").await.expect("a count"), 2);
    let stale = add(&subject.journal, 33, "r3").await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    assert_eq!(add(&subject.journal, 35, "r2").await.expect("a count"), 2);
}

#[tokio::test]
async fn a_line_that_a_crash_cut_short_was_never_written() {
    let subject = Subject::new();
    add(&subject.journal, 33, "r1").await.expect("a count");
    let path = subject.folder.path().join("journal");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .expect("a file");
    file.write_all(br#"{"resource":"/shelf","token":"99","mo"#)
        .expect("half a line");
    let after = subject.again();
    assert_eq!(add(&after, 34, "r2").await.expect("a count"), 2);
    assert_eq!(add(&subject.journal, 35, "r3").await.expect("a count"), 3);
}
