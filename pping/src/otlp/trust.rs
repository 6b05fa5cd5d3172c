//! Whom to trust that a receiver is the one it says it is.

use std::{fs, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::Error;
use crate::config::Otlp;

/// What TLS needs to know for a receiver, if its URL is of https.
pub(super) fn client(settings: &Otlp) -> Result<Option<Arc<ClientConfig>>, Error> {
    if !settings.endpoint.is_tls {
        return Ok(None);
    }
    let roots = match &settings.authorities {
        Some(path) => listed(path)?,
        None => of_system(settings)?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Host { url: settings.endpoint.to_string(), reason: error.to_string() })?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}

/// The authorities in a file.
fn listed(path: &Path) -> Result<RootCertStore, Error> {
    let wrong = |reason: String| Error::Authorities { path: path.to_owned(), reason };
    let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| wrong(format!("this is not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(format!("certificate {} cannot be used: {error}", roots.len() + 1)))?;
    }
    if roots.is_empty() { Err(wrong("it contains no certificate in PEM".to_owned())) } else { Ok(roots) }
}

/// The authorities of the system, or those that `SSL_CERT_FILE` names.
fn of_system(settings: &Otlp) -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system may have some that are too old for rustls.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(Error::NoAuthorities { url: settings.endpoint.to_string(), reason });
    }
    Ok(roots)
}
