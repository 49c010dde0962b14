use std::sync::Arc;
use std::time::Duration;

use fenced_core::{Answer, Fence, LossReason, Outcome, Request, SinkError};
use tokio::time::timeout;
use zookeeper_client::{CreateMode, Error, MultiWriteError, MultiWriter};

use super::ZkWrite;
use super::found::{ANY, Found};
use super::record::{self, fence_node, folder, read, request_node};
use super::standing::Standing;
use super::write::{Change, check_size};
use crate::failure::Failure;
use crate::session::Session;

/// The longest name of a resource, in bytes.
const MAX_RESOURCE_BYTES: usize = 1_024;
/// Somebody else must have been faster each time.
const MOST_TRIES: usize = 100;

/// A claim, or a write.
pub(super) struct Attempt {
    fence: Fence,
    /// The contender that has the token, if it is one of ours.
    own: Option<Arc<str>>,
    request: Option<Request>,
    changes: Vec<Change>,
}

impl Attempt {
    pub(super) fn new(fence: &Fence, own: Option<Arc<str>>) -> Result<Self, SinkError> {
        let length = fence.resource.len();
        if length == 0 || length > MAX_RESOURCE_BYTES {
            return Err(SinkError::backend(format!(
                "the name of a resource has 1 to {MAX_RESOURCE_BYTES} bytes, not {length}"
            )));
        }
        Ok(Self {
            fence: fence.clone(),
            own,
            request: None,
            changes: Vec::new(),
        })
    }

    pub(super) fn write(mut self, request: &Request, write: ZkWrite) -> Result<Self, SinkError> {
        request.digest()?;
        self.request = Some(request.clone());
        self.changes = write.changes;
        Ok(self)
    }

    /// A claim may be repeated.
    pub(super) fn unanswered(&self) -> SinkError {
        match &self.request {
            Some(request) => request.ambiguous(),
            None => SinkError::Retry("no answer to a claim".into()),
        }
    }

    pub(super) async fn run(&self, session: &Session) -> Result<Outcome<Answer>, SinkError> {
        for _ in 0..MOST_TRIES {
            connected(session).await?;
            let found = match self.find(session).await? {
                Ok(found) => found,
                Err(answer) => return Ok(Outcome::Replayed(answer)),
            };
            let answer = Answer::of(&found.versions())?;
            if found.raised.is_none() && self.request.is_none() {
                return Ok(Outcome::Applied(answer));
            }
            let written = self.transact(session, &found, &answer)?;
            match session.answer(written).await {
                Ok(()) => return Ok(Outcome::Applied(answer)),
                Err(error) => self.failed(session, &found, error).await?,
            }
        }
        Err(SinkError::Retry(
            "the nodes were changed by somebody else each time".into(),
        ))
    }

    /// Compares, and looks at the nodes; or finds the answer that the request has got before.
    async fn find(&self, session: &Session) -> Result<Result<Found, Answer>, SinkError> {
        let fence = fence_node(session, &self.fence.resource);
        let paths = self.paths(&session.settings.root)?;
        // All are sent before the first is awaited.
        let standing = session.client.get_data(&fence);
        let request = self.request.as_ref().map(|request| {
            let node = request_node(session, request.id());
            (request, session.client.get_data(&node))
        });
        let nodes: Vec<_> = paths
            .iter()
            .map(|path| session.client.get_data(path))
            .collect();
        let standing = read(session, standing).await?;
        let raised = self.raised(&fence, standing.as_ref())?;
        if let Some((request, stored)) = request {
            if let Some((data, _)) = read(session, stored).await? {
                return record::answer(request, &data).map(Err);
            }
        }
        let (mut present, mut data) = (Vec::new(), Vec::new());
        for ((path, reading), change) in paths.into_iter().zip(nodes).zip(&self.changes) {
            let (now, version) = read(session, reading).await?.unzip();
            data.push(change.of(now.as_deref()));
            present.push((path, version));
        }
        check_size(&data)?;
        Ok(Ok(Found {
            fence: (fence, standing.map(|(_, version)| version)),
            raised,
            nodes: present,
            data,
        }))
    }

    fn paths(&self, root: &str) -> Result<Vec<String>, SinkError> {
        let changes = self.changes.iter();
        changes.map(|change| change.path(root)).collect()
    }

    /// What the fence becomes, if it changes.
    fn raised(
        &self,
        node: &str,
        standing: Option<&(Vec<u8>, i32)>,
    ) -> Result<Option<Standing>, SinkError> {
        let seen = match standing {
            Some((data, _)) => Standing::parse(node, data)?,
            None => Standing::default(),
        };
        seen.raised(&self.fence)
    }

    /// Sends the transaction: it goes through only if all is still as it was found.
    fn transact<'s>(
        &self,
        session: &'s Session,
        found: &Found,
        answer: &Answer,
    ) -> Result<impl Future<Output = Result<(), MultiWriteError>> + use<'s>, SinkError> {
        let mut multi = session.client.new_multi_writer();
        self.assemble(session, &mut multi, found, answer)
            .map_err(SinkError::backend)?;
        let commit = multi.commit();
        Ok(async move { commit.await.map(|_| ()) })
    }

    fn assemble(
        &self,
        session: &Session,
        multi: &mut MultiWriter<'_>,
        found: &Found,
        answer: &Answer,
    ) -> Result<(), Error> {
        let lasting = session.settings.create(CreateMode::Persistent);
        if let Some(own) = &self.own {
            multi.add_check_version(own, ANY)?;
        }
        found.add_to(multi, &lasting)?;
        if let Some(request) = &self.request {
            let digest = request.digest().expect("was looked at before");
            let record = record::text(self.fence.token.get(), digest, answer);
            let node = request_node(session, request.id());
            multi.add_create(&node, record.as_bytes(), &lasting)?;
        }
        Ok(())
    }

    /// Makes ready for the next try, if another one can succeed.
    async fn failed(
        &self,
        session: &Session,
        found: &Found,
        error: MultiWriteError,
    ) -> Result<(), SinkError> {
        match error {
            MultiWriteError::OperationFailed { index, source } => match (source, &self.own) {
                (Error::NoNode, Some(own)) if index == 0 => {
                    session.lose(own, LossReason::NodeDeleted);
                    Err(SinkError::backend(
                        "the contender that this token is of is gone",
                    ))
                }
                (Error::NoNode, _) => make_parents(session, &found.nodes).await,
                (Error::BadVersion | Error::NodeExists, _) => Ok(()),
                (source, _) => Err(SinkError::backend(source)),
            },
            MultiWriteError::RequestFailed { source } => match session.judge(&source) {
                Failure::Refused => Err(SinkError::backend(source)),
                Failure::Postponed => Err(SinkError::Retry(source.into())),
                Failure::Over | Failure::Unknown => Err(self.unanswered()),
            },
        }
    }
}

async fn connected(session: &Session) -> Result<(), SinkError> {
    let limit: Duration = session.settings.connect_timeout;
    let connected = timeout(limit, session.connected()).await;
    connected.map_err(|_| SinkError::Retry("the ensemble cannot be reached right now".into()))?;
    Ok(())
}

async fn make_parents(session: &Session, nodes: &[(String, Option<i32>)]) -> Result<(), SinkError> {
    let own = ["fences", "requests"].map(|kind| folder(session, kind));
    let missing = nodes.iter().filter(|(_, version)| version.is_none());
    let parents = missing.filter_map(|(node, _)| Some(node.rsplit_once('/')?.0));
    let parents = parents.filter(|parent| !parent.is_empty());
    for folder in own.iter().map(String::as_str).chain(parents) {
        make(session, folder).await?;
    }
    Ok(())
}

pub(super) async fn make(session: &Session, folder: &str) -> Result<(), SinkError> {
    let lasting = session.settings.create(CreateMode::Persistent);
    match session.answer(session.client.mkdir(folder, &lasting)).await {
        Ok(()) | Err(Error::NodeExists) => Ok(()),
        Err(error) if session.judge(&error) == Failure::Refused => Err(SinkError::backend(error)),
        Err(error) => Err(SinkError::Retry(error.into())),
    }
}
