//! Whether a server is the one it claims to be.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// Trusts servers with a certificate of these authorities, and servers that present one of these certificates
/// themselves, as OpenSSL and Go do. `openssl req -x509` makes a certificate that is an authority (`CA:TRUE`), and
/// webpki accepts that for no server.
#[derive(Debug)]
pub(super) struct Listed {
    verifier: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Listed {
    /// Returns a verifier for `roots`, which are made of `certificates`.
    pub(super) fn new(
        roots: RootCertStore,
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { verifier: verifier.map_err(|error| error.to_string())?, certificates })
    }
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error =
            match self.verifier.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
                Err(Error::InvalidCertificate(error)) => error,
                verified => return verified,
            };
        // webpki checks the dates before it finds either of these.
        let is_about_issuer = error == CertificateError::UnknownIssuer || is_authority(&error);
        if !is_about_issuer || !self.certificates.contains(certificate) {
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
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Whether a server presented the certificate of an authority.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else { return false };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Trusts any server, whatever its certificate says. It only has to own the key of the certificate.
#[derive(Debug)]
pub(super) struct Anyone(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
