use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use uuid::Uuid;
use zookeeper_client::{Error, EventType, WatchedEvent};

use crate::label;
use crate::session::Session;

/// The one in front, watched.
pub(super) struct Predecessor {
    pub(super) name: String,
    pub(super) label: Option<String>,
    news: News,
}

enum News {
    Watch(Pin<Box<dyn Future<Output = WatchedEvent> + Send>>),
    Later(Pin<Box<Sleep>>),
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
            let later = News::Later(Box::pin(sleep(apart(LOOK_AGAIN_AFTER))));
            return Ok(Self::new(name, &data, later));
        }
        let watching = client.get_and_watch_data(&path);
        let (data, _, watcher) = session.answer(watching).await?;
        let news = News::Watch(Box::pin(watcher.changed()));
        Ok(Self::new(name, &data, news))
    }

    fn new(name: &str, data: &[u8], news: News) -> Self {
        Self {
            name: name.to_owned(),
            label: label::read(data, label::MAX_BYTES),
            news,
        }
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&mut self) -> Change {
        let event = match &mut self.news {
            News::Watch(event) => event.await.event_type,
            News::Later(later) => {
                later.await;
                return Change::Unknown;
            }
        };
        match event {
            // This task ends with the session.
            EventType::Session => std::future::pending().await,
            EventType::NodeDeleted => Change::Gone,
            _ => Change::Unknown,
        }
    }
}

/// About so long, differently for each contender.
pub(super) fn apart(time: Duration) -> Duration {
    let random = Uuid::new_v4().as_u128() % 1_000;
    let part = u32::try_from(random).unwrap_or_default();
    time + time * part / 1_000
}
