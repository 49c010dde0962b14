use std::fmt;
use std::time::Duration;

use fenced_core::ServiceId;
use zookeeper_client::{
    Acl, Acls, AuthId, Client, Connector, CreateMode, CreateOptions, Error, Permission,
};

#[cfg(feature = "tls")]
use crate::ZkTls;
use crate::address::Address;
use crate::{ZkAcl, label};

/// What all sessions of one lock service have in common.
pub(crate) struct Settings {
    pub(crate) address: Address,
    /// Empty, or the absolute path that all lock paths are below.
    pub(crate) root: String,
    pub(crate) session_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) owner: String,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) acl: Vec<Acl>,
    /// Whether to look for the client's socket, and turn Nagle's algorithm off on it.
    pub(crate) nodelay: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ZkTls>,
}

/// A user and a password, never shown.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) scheme: &'static str,
    pub(crate) secret: Vec<u8>,
}

impl Settings {
    /// The directory of a lock: the parent of its contenders.
    pub(crate) fn directory(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// The node that keeps what is added to a transaction's id to make a token.
    pub(crate) fn base_node(&self) -> String {
        format!("{}/fenced/base", self.root)
    }

    pub(crate) fn label(&self, request: Option<&str>) -> String {
        label::of(&self.owner, request)
    }

    /// How a node of this mode is created.
    pub(crate) fn create(&self, mode: CreateMode) -> CreateOptions<'_> {
        mode.with_acls(Acls::new(&self.acl))
    }

    /// Tries once to open a session.
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        let (connector, servers) = (self.connector(), &self.address.servers);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return connector
                .with_tls(tls.options()?)
                .secure_connect(servers)
                .await;
        }
        connector.connect(servers).await
    }

    fn connector(&self) -> Connector {
        let connector = Client::connector().with_session_timeout(self.session_timeout);
        match &self.credentials {
            Some(it) => connector.with_auth(it.scheme, &it.secret),
            None => connector,
        }
    }

    /// Which set of locks this is.
    pub(crate) fn id(&self) -> ServiceId {
        ServiceId::named(&format!(
            "zookeeper {}{}",
            self.address.ensemble(),
            self.root
        ))
    }
}

impl ZkAcl {
    pub(crate) fn list(self) -> Vec<Acl> {
        match self {
            Self::Open => vec![Acl::new(Permission::ALL, AuthId::anyone())],
            Self::Creator => vec![
                Acl::new(Permission::ALL, AuthId::authed()),
                Acl::new(Permission::READ, AuthId::anyone()),
            ],
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
