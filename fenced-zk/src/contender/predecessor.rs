use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;
use zookeeper_client::{Error, EventType};

use crate::label;
use crate::session::Session;

/// The one in front, watched.
pub(super) struct Predecessor {
    pub(super) name: String,
    pub(super) label: Option<String>,
    change: Pin<Box<dyn Future<Output = Change> + Send>>,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Gone,
    /// Perhaps nothing.
    Unknown,
}

/// How long the names of contenders are. A longer one, of a recipe that we do not know or of
/// somebody who means ill, would cost more watched bytes than its line was counted for.
pub(crate) const NAME_BYTES: usize = 60;

const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Predecessor {
    pub(super) async fn watch(
        session: &Session,
        directory: &str,
        name: &str,
    ) -> Result<Self, Error> {
        let path = format!("{directory}/{name}");
        let client = &session.client;
        if name.len() > NAME_BYTES {
            let (data, _) = session.answer(client.get_data(&path)).await?;
            let later = async {
                sleep(apart(LOOK_AGAIN_AFTER)).await;
                Change::Unknown
            };
            return Ok(Self::new(name, &data, later));
        }
        let watching = client.get_and_watch_data(&path);
        let (data, _, watcher) = session.answer(watching).await?;
        let change = async {
            match watcher.changed().await.event_type {
                // This task ends with the session.
                EventType::Session => std::future::pending().await,
                EventType::NodeDeleted => Change::Gone,
                _ => Change::Unknown,
            }
        };
        Ok(Self::new(name, &data, change))
    }

    fn new(name: &str, data: &[u8], change: impl Future<Output = Change> + Send + 'static) -> Self {
        Self {
            name: name.to_owned(),
            label: label::read(data, label::MAX_BYTES),
            change: Box::pin(change),
        }
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&mut self) -> Change {
        self.change.as_mut().await
    }
}

/// About so long, differently for each contender.
pub(super) fn apart(time: Duration) -> Duration {
    let random = Uuid::new_v4().as_u128() % 1_000;
    let part = u32::try_from(random).unwrap_or_default();
    time + time * part / 1_000
}
