use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fenced::{Fate, Fence, FencingSink, Outcome, Request, SinkError, SinkId};
use rustix::fs::{FlockOperation, flock};

use crate::line::{Line, Movement};
use crate::seen::Seen;

/// An append-only file of what came to a shelf and left it, which refuses stale writes.
///
/// Each line carries the token of its writer, so that the fence is durable in the same fsync as
/// the movement. The processes of one machine share it, under a lock of the file's.
#[derive(Clone)]
pub(crate) struct Journal {
    id: SinkId,
    open: Arc<Mutex<Open>>,
}

/// The file, and what was read of it so far.
struct Open {
    file: File,
    seen: Seen,
    read_to: u64,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        let open = Open {
            file,
            seen: Seen::default(),
            read_to: 0,
        };
        Ok(Self {
            id: SinkId::unique(),
            open: Arc::new(Mutex::new(open)),
        })
    }

    /// What is on the shelf of this resource.
    pub(crate) async fn count(&self, resource: &str) -> Result<i64, SinkError> {
        let resource = resource.to_owned();
        self.locked(move |open| Ok(open.seen.count(&resource)))
            .await
    }

    /// Runs `step` on a thread that may block, alone among all processes, knowing the whole file.
    ///
    /// It runs to its end when the caller's future is dropped: wholly or not at all.
    async fn locked<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Open) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let open = Arc::clone(&self.open);
        let running = tokio::task::spawn_blocking(move || {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            flock(&open.file, FlockOperation::LockExclusive).map_err(SinkError::backend)?;
            let done = open.catch_up().map_err(SinkError::backend);
            let done = done.and_then(|()| step(&mut open));
            flock(&open.file, FlockOperation::Unlock).map_err(SinkError::backend)?;
            done
        });
        running.await.map_err(SinkError::backend)?
    }
}

#[async_trait]
impl FencingSink for Journal {
    type Write = Movement;
    type Answer = i64;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let fence = fence.clone();
        self.locked(move |open| {
            if open.seen.compare(&fence)? {
                // A claim has no request, and may be repeated.
                let claim = Line::claim(&fence);
                open.append(claim).map_err(SinkError::backend)?;
            }
            Ok(())
        })
        .await
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        movement: Movement,
    ) -> Result<Outcome<i64>, SinkError> {
        let digest = *request.digest()?;
        let (fence, request) = (fence.clone(), request.clone());
        self.locked(move |open| {
            open.seen.compare(&fence)?;
            if let Some(answer) = open.seen.answer(&request)? {
                return Ok(Outcome::Replayed(answer));
            }
            let count = movement.apply(open.seen.count(&fence.resource));
            let line = Line::moved(&fence, request.id(), &digest, count);
            // Once a byte was written, nobody knows what a crash would leave of it.
            open.append(line).map_err(|_| request.ambiguous())?;
            Ok(Outcome::Applied(count))
        })
        .await
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<i64>, SinkError> {
        let request = request.clone();
        self.locked(move |open| {
            if let Some(answer) = open.seen.answer(&request)? {
                return Ok(Fate::Applied(answer));
            }
            // A writer with an older token is refused from now on, so that "not yet" is "never".
            match request.fence() {
                Some(fence) if open.seen.is_stale(fence) => Ok(Fate::Absent),
                _ => Ok(Fate::Unknown),
            }
        })
        .await
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.id)
    }
}

impl Open {
    /// Reads what others have appended, and cuts off what one of them was stopped in writing.
    fn catch_up(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.read_to))?;
        let mut reader = BufReader::new(&self.file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let length = reader.read_until(b'\n', &mut text)?;
            if text.last() != Some(&b'\n') {
                break;
            }
            self.seen.add(serde_json::from_slice(&text)?);
            self.read_to += length as u64;
        }
        if !text.is_empty() {
            self.file.set_len(self.read_to)?;
        }
        Ok(())
    }

    fn append(&mut self, line: Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        self.read_to += text.len() as u64;
        self.seen.add(line);
        Ok(())
    }
}
