//! Whether a server is the one it claims to be.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

use super::certificate::is_authority;

/// Checks that a server owns the key of its certificate, and that the certificate is trusted.
#[derive(Debug)]
pub(super) struct Verifier {
    /// The certificates to trust; any certificate without them.
    listed: Option<Listed>,
    provider: Arc<CryptoProvider>,
}

/// Trusts servers with a certificate of these authorities, and servers that present one of these certificates
/// themselves, as OpenSSL and Go do. `openssl req -x509` makes a certificate that is an authority (`CA:TRUE`), and
/// webpki accepts that for no server.
#[derive(Debug)]
struct Listed {
    verifier: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Trusts any server, whatever its certificate says.
    #[cfg(feature = "top")]
    pub(super) fn anyone(provider: Arc<CryptoProvider>) -> Self {
        Self { listed: None, provider }
    }

    /// Trusts the servers that `roots`, which are made of `certificates`, vouch for.
    pub(super) fn listed(
        roots: RootCertStore,
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        Ok(Self { listed: Some(Listed { verifier, certificates }), provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Listed { verifier, certificates }) = &self.listed else {
            return Ok(ServerCertVerified::assertion());
        };
        let error = match verifier.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            Err(Error::InvalidCertificate(error)) => error,
            verified => return verified,
        };
        // webpki checks the dates before it finds either of these.
        let is_about_issuer = error == CertificateError::UnknownIssuer || is_authority(&error);
        if !is_about_issuer || !certificates.contains(certificate) {
            return Err(error.into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
