use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::{Fate, Fence, FencingSink, FencingToken, Outcome, Request, SinkError, SinkId};

/// A sink in memory: counters that refuse stale writes. Clones are handles on the same counters.
///
/// ```
/// use fenced_core::{section, MemoryLocks, MemorySink, MemoryWrite, Request, SinkError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (locks, stock) = (MemoryLocks::new(), MemorySink::new());
/// let left = section(&locks, "/locks/sku-4711")
///     .run(async |guard| {
///         let stock = guard.fence(&stock);
///         stock.claim().await?;
///         let restock = MemoryWrite::add("sku-4711", 5);
///         Ok::<_, SinkError>(stock.write(&Request::new("r1", &5), restock).await?.into_answer())
///     })
///     .await??;
/// assert_eq!(left, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemorySink {
    id: SinkId,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    fences: HashMap<String, FencingToken>,
    counters: HashMap<String, i64>,
    requests: HashMap<String, Applied>,
    answers_to_lose: usize,
}

#[derive(Debug)]
struct Applied {
    digest: [u8; 32],
    answer: i64,
}

/// A change of one counter of a [`MemorySink`]; the answer is its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryWrite {
    key: String,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Set(i64),
    Add(i64),
}

impl MemoryWrite {
    /// Sets the counter `key`.
    pub fn set(key: impl Into<String>, value: i64) -> Self {
        let key = key.into();
        let change = Change::Set(value);
        Self { key, change }
    }

    /// Adds to the counter `key`, which is zero at first. It stops at the ends of an `i64`.
    pub fn add(key: impl Into<String>, amount: i64) -> Self {
        let key = key.into();
        let change = Change::Add(amount);
        Self { key, change }
    }
}

impl MemorySink {
    /// A sink that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: SinkId::unique(),
            state: Arc::default(),
        }
    }

    /// The value of the counter `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> i64 {
        self.state().counters.get(key).copied().unwrap_or_default()
    }

    /// The newest token that `resource` has seen.
    #[must_use]
    pub fn current(&self, resource: &str) -> Option<FencingToken> {
        self.state().fences.get(resource).copied()
    }

    /// Applies the next `writes` writes, but answers [`SinkError::Ambiguous`] to them.
    pub fn lose_answers(&self, writes: usize) {
        self.state().answers_to_lose = writes;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn raise(&mut self, fence: &Fence) -> Result<(), SinkError> {
        let (mine, resource) = (fence.token, &fence.resource);
        match self.fences.get_mut(resource) {
            Some(current) if *current > mine => Err(SinkError::Stale {
                mine,
                current: *current,
            }),
            Some(current) => {
                *current = mine;
                Ok(())
            }
            None => {
                self.fences.insert(resource.clone(), mine);
                Ok(())
            }
        }
    }

    fn applied(&self, request: &Request) -> Result<Option<&Applied>, SinkError> {
        let digest = request.digest()?;
        match self.requests.get(request.id()) {
            Some(applied) if applied.digest != *digest => Err(request.mismatch()),
            found => Ok(found),
        }
    }

    fn apply(&mut self, write: MemoryWrite) -> i64 {
        let counter = self.counters.entry(write.key).or_default();
        *counter = match write.change {
            Change::Set(value) => value,
            Change::Add(amount) => counter.saturating_add(amount),
        };
        *counter
    }
}

#[async_trait]
impl FencingSink for MemorySink {
    type Write = MemoryWrite;
    type Answer = i64;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        self.state().raise(fence)
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: MemoryWrite,
    ) -> Result<Outcome<i64>, SinkError> {
        let digest = *request.digest()?;
        let mut state = self.state();
        state.raise(fence)?;
        if let Some(applied) = state.applied(request)? {
            return Ok(Outcome::Replayed(applied.answer));
        }
        let answer = state.apply(write);
        let applied = Applied { digest, answer };
        state.requests.insert(request.id().to_owned(), applied);
        if state.answers_to_lose > 0 {
            state.answers_to_lose -= 1;
            return Err(request.ambiguous());
        }
        Ok(Outcome::Applied(answer))
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<i64>, SinkError> {
        let state = self.state();
        if let Some(applied) = state.applied(request)? {
            return Ok(Fate::Applied(applied.answer));
        }
        let passed = request.fence().is_some_and(|sent| {
            let current = state.fences.get(&sent.resource);
            current.is_some_and(|current| *current > sent.token)
        });
        Ok(if passed { Fate::Absent } else { Fate::Unknown })
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.id)
    }
}

impl Default for MemorySink {
    fn default() -> Self {
        Self::new()
    }
}
