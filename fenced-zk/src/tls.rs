use std::fmt;

use zookeeper_client::{TlsCa, TlsCerts, TlsIdentity, TlsOptions};

use crate::ZkError;

/// TLS to the servers, by rustls: whom to trust, and who we are.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use fenced_zk::{ZkLocks, ZkTls};
///
/// let authorities = std::fs::read_to_string("/etc/zookeeper/ca.pem")?;
/// let locks = ZkLocks::builder()
///     .tls(ZkTls::trusting(&authorities)?)
///     .connect("zk1:2281,zk2:2281,zk3:2281")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is encrypted before it is given to the builder"]
pub struct ZkTls {
    authorities: TlsCa,
    identity: Option<TlsIdentity>,
}

impl ZkTls {
    /// Trusts servers whose certificate one of these authorities has signed (PEM, with revocation
    /// lists if wanted), and which names the host that was connected to.
    ///
    /// # Errors
    /// [`ZkError::Options`] if there is no certificate in the text.
    pub fn trusting(authorities: &str) -> Result<Self, ZkError> {
        let authorities = TlsCa::from_pem(authorities);
        Ok(Self {
            authorities: authorities.map_err(|error| unusable("authorities", &error))?,
            identity: None,
        })
    }

    /// Shows a certificate to the server: the text of it and of its key (PEM).
    ///
    /// # Errors
    /// [`ZkError::Options`] if they cannot be read.
    pub fn identity(mut self, certificate: &str, key: &str) -> Result<Self, ZkError> {
        let identity = TlsIdentity::from_pem(certificate, key);
        self.identity = Some(identity.map_err(|error| unusable("identity", &error))?);
        Ok(self)
    }

    pub(crate) fn options(&self) -> Result<TlsOptions, zookeeper_client::Error> {
        let certificates = TlsCerts::builder().with_ca(self.authorities.clone());
        let certificates = match self.identity.clone() {
            Some(identity) => certificates.with_identity(identity),
            None => certificates,
        };
        Ok(TlsOptions::new().with_certs(certificates.build()?))
    }
}

fn unusable(what: &str, error: &zookeeper_client::Error) -> ZkError {
    ZkError::Options(format!("the {what} for TLS cannot be used: {error}"))
}

impl fmt::Debug for ZkTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkTls").finish_non_exhaustive()
    }
}
