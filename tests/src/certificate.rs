//! A certificate for a server on this machine.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::{folder, installed};

/// A certificate that signs itself, with its key; removed when dropped.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
    pem: String,
}

impl Certificate {
    /// Of the key store; it protects nothing.
    pub(crate) const PASSWORD: &str = "fenced-tests";

    /// Makes one for 127.0.0.1.
    ///
    /// # Errors
    /// When Java's `keytool` is not installed or fails.
    pub fn new() -> io::Result<Self> {
        let folder = folder::for_server("certificate-")?;
        let mut certificate = Self {
            folder,
            pem: String::new(),
        };
        certificate.keytool(&[
            "-genkeypair",
            "-keyalg",
            "EC",
            "-dname",
            "CN=127.0.0.1",
            "-ext",
            "SAN=ip:127.0.0.1",
            "-validity",
            "2",
        ])?;
        certificate.pem = certificate.keytool(&["-exportcert", "-rfc"])?;
        Ok(certificate)
    }

    /// The certificate, as text.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The file with the certificate and its key.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store.p12")
    }

    fn keytool(&self, arguments: &[&str]) -> io::Result<String> {
        let output = Command::new(installed::keytool()?)
            .args(arguments)
            .args(["-alias", "server", "-storetype", "PKCS12"])
            .args(["-storepass", Self::PASSWORD, "-keystore"])
            .arg(self.store())
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            return Err(io::Error::other(format!("keytool: {said}")));
        }
        String::from_utf8(output.stdout).map_err(io::Error::other)
    }
}
