use std::fmt;
use std::time::Duration;

#[cfg(feature = "tls")]
use crate::ZkTls;
use crate::address::{self, Address};
use crate::settings::{Credentials, Settings};
use crate::{ZkError, ZkLocks, label};

/// How to connect to an ensemble; made by [`ZkLocks::builder`].
#[must_use = "nothing is connected before `connect`"]
#[derive(Clone)]
pub struct ZkBuilder {
    session_timeout: Duration,
    connect_timeout: Duration,
    root: String,
    owner: Option<String>,
    credentials: Option<Credentials>,
    acl: Option<ZkAcl>,
    nodelay: bool,
    #[cfg(feature = "tls")]
    tls: Option<ZkTls>,
}

/// Who may do what with the nodes that a lock service creates. Everybody may read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZkAcl {
    /// Everybody may do anything.
    Open,
    /// Whoever has the same credentials may do anything, and nobody else.
    Creator,
}

impl ZkBuilder {
    /// How long a session, and with it a lease, outlives the connection, unless told otherwise.
    pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long [`connect`](Self::connect) takes at most, unless told otherwise.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
    /// How long an acquire with `timeout = "0s"` waits for the ensemble's answer, at most: there
    /// may be no connection. Less if the connect timeout is.
    pub const TRIES_ONCE_WITHIN: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        Self {
            session_timeout: Self::DEFAULT_SESSION_TIMEOUT,
            connect_timeout: Self::DEFAULT_CONNECT_TIMEOUT,
            root: String::new(),
            owner: None,
            credentials: None,
            acl: None,
            nodelay: true,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// How long the server keeps the session of a client it does not hear of.
    ///
    /// From 100 ms to 24 days; the server has bounds of its own, and what it grants counts:
    /// [`ZkLocks::session_timeout`] tells it, and a warning is logged where it differs. Ten seconds
    /// unless told otherwise.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long [`connect`](Self::connect) takes at most, and what operators ask for.
    ///
    /// Five seconds unless told otherwise.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The node that all lock paths are below, such as `/services/shop`.
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Who this is, for those who look into a queue: service, instance. Never a secret.
    ///
    /// The program's name and its process id unless told otherwise.
    pub fn owner(mut self, label: impl Into<String>) -> Self {
        self.owner = Some(label.into());
        self
    }

    /// Signs in with a user and a password (the scheme `digest`).
    pub fn digest(mut self, user: &str, password: &str) -> Self {
        self.credentials = Some(Credentials {
            scheme: "digest",
            secret: format!("{user}:{password}").into_bytes(),
        });
        self
    }

    /// Who may do what with the nodes that are created: lock nodes and their parents.
    ///
    /// [`ZkAcl::Creator`] for those who sign in, [`ZkAcl::Open`] for the others, unless told
    /// otherwise.
    pub fn acl(mut self, acl: ZkAcl) -> Self {
        self.acl = Some(acl);
        self
    }

    /// Whether to set `TCP_NODELAY` on the connection, so that an acquire takes one round trip to
    /// the server, not two. It is, unless told otherwise.
    ///
    /// The client library does not offer it, so on Linux the connection is looked for among the
    /// sockets in `/proc/self/fd`, after each reconnect, by the port of its peer; nothing but a
    /// socket is touched. Elsewhere, or where that folder cannot be read, acquires take two round
    /// trips, and nothing else changes.
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.nodelay = nodelay;
        self
    }

    /// Speaks TLS to the servers, except to those that are named `tcp://host:port`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: ZkTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Opens a session with the ensemble `address`: `host1:2181,host2:2181/chroot`.
    ///
    /// # Errors
    /// [`ZkError::Options`] before anything is sent; [`ZkError::Unreachable`] and
    /// [`ZkError::Credentials`] within the connect timeout.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened, in the background.
    pub async fn connect(self, address: &str) -> Result<ZkLocks, ZkError> {
        ZkLocks::open(self.settings(address)?).await
    }

    fn settings(self, address: &str) -> Result<Settings, ZkError> {
        let address = Address::parse(address)?;
        #[cfg(feature = "tls")]
        let has_tls = self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_tls = false;
        if address.asks_for_tls() && !has_tls {
            let why =
                "the address asks for TLS: enable the feature, and say whom to trust with `tls`";
            return Err(ZkError::Options(why.to_owned()));
        }
        self.check_timeouts()?;
        let acl = self.chosen_acl()?;
        Ok(Settings {
            root: format!("{}{}", address.chroot, address::folder(&self.root)?),
            address,
            session_timeout: self.session_timeout,
            connect_timeout: self.connect_timeout,
            owner: self.owner.unwrap_or_else(label::default_owner),
            credentials: self.credentials,
            acl: acl.list(),
            nodelay: self.nodelay,
            #[cfg(feature = "tls")]
            tls: self.tls,
        })
    }

    fn check_timeouts(&self) -> Result<(), ZkError> {
        // The server reads the timeout as a signed number of milliseconds.
        let longest = Duration::from_secs(24 * 24 * 3_600);
        if !(Duration::from_millis(100)..=longest).contains(&self.session_timeout) {
            let timeout = self.session_timeout;
            let why = format!("the session timeout {timeout:.1?} is not within 100 ms and 24 days");
            return Err(ZkError::Options(why));
        }
        if self.connect_timeout.is_zero() {
            let why = "the connect timeout is zero: give it some time".to_owned();
            return Err(ZkError::Options(why));
        }
        Ok(())
    }

    fn chosen_acl(&self) -> Result<ZkAcl, ZkError> {
        let acl = self.acl.unwrap_or(match self.credentials {
            Some(_) => ZkAcl::Creator,
            None => ZkAcl::Open,
        });
        if acl == ZkAcl::Creator && self.credentials.is_none() {
            let why = "only who signs in can be told from others: add `digest`".to_owned();
            return Err(ZkError::Options(why));
        }
        Ok(acl)
    }
}

impl fmt::Debug for ZkBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkBuilder")
            .field("session_timeout", &self.session_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
