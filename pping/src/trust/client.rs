//! The TLS configuration of a client: the authorities that vouch for a server, and the client's own certificate.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};

use super::{
    pem::{PairFault, authority_fault, certificates, key, pair_fault},
    server::Verifier,
};
use crate::text;

/// The longest file, bytes: all authorities that a system trusts.
const MAX_BYTES: u64 = 1 << 20;

/// Which servers to trust.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trusted<'a> {
    /// Those with a certificate of an authority in this file, or in the system's without one, or with one of the
    /// certificates in it.
    Listed(Option<&'a Path>),
    /// All.
    #[cfg(feature = "top")]
    Anyone,
}

/// What is wrong with certificates.
#[derive(Debug)]
pub(crate) enum TlsError {
    /// The file of authorities cannot be used.
    Authorities(String),
    /// The system has no authorities. The text is a colon and the reason, or empty.
    NoAuthorities(String),
    /// The client's certificate or key cannot be used.
    Identity(String),
}

/// The files with a client's certificate and key, which may be the same file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

/// Makes the TLS configuration of a client.
///
/// # Errors
/// If a file cannot be used, or if the system has no authorities.
pub(crate) fn client(
    trusted: Trusted<'_>,
    identity: Option<Identity<'_>>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = match trusted {
        #[cfg(feature = "top")]
        Trusted::Anyone => Verifier::anyone(Arc::clone(&provider)),
        Trusted::Listed(file) => {
            let (roots, certificates) = file.map_or_else(from_system, from_file)?;
            let verifier = Verifier::listed(roots, certificates, Arc::clone(&provider));
            verifier.map_err(TlsError::Authorities)?
        }
    };
    #[expect(clippy::expect_used, reason = "ring is known to have the ciphers of the default versions")]
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (certificates, key) = identity.read()?;
            builder.with_client_auth_cert(certificates, key).map_err(|error| match pair_fault(&error) {
                PairFault::Certificate(reason) => wrong(identity.certificate, &reason),
                PairFault::Key(reason) => wrong(identity.key, &reason),
            })?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Certificates to trust, and the authorities that they make.
type Authorities = (RootCertStore, Vec<CertificateDer<'static>>);

/// The authorities in a file.
fn from_file(path: &Path) -> Result<Authorities, TlsError> {
    let certificates = read(path).and_then(|text| certificates(&text)).map_err(TlsError::Authorities)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|error| {
            let number = roots.len() + 1;
            TlsError::Authorities(format!("certificate {number} cannot be used: {}", authority_fault(&error)))
        })?;
    }
    Ok((roots, certificates))
}

/// The authorities of the system, or those that `SSL_CERT_FILE` names.
fn from_system() -> Result<Authorities, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Skips certificates that are too old for rustls, which a system may have.
    roots.add_parsable_certificates(found.certs.iter().cloned());
    if roots.is_empty() {
        let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(TlsError::NoAuthorities(reason));
    }
    Ok((roots, found.certs))
}

impl Identity<'_> {
    fn read(self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let certificates = read(self.certificate).and_then(|text| certificates(&text));
        let key = read(self.key).and_then(|text| key(&text));
        Ok((
            certificates.map_err(|reason| wrong(self.certificate, &reason))?,
            key.map_err(|reason| wrong(self.key, &reason))?,
        ))
    }
}

/// The error of a file of an identity.
fn wrong(path: &Path, reason: &str) -> TlsError {
    TlsError::Identity(format!("{}: {reason}", path.display()))
}

/// Reads a file with certificates or a key, as other files that people write.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = text::open(path).and_then(|file| text::read_bytes(file, MAX_BYTES));
    bytes.map_err(|error| error.to_string())
}
