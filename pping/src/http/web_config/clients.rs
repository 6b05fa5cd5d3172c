//! Client certificates.

use std::{net::IpAddr, sync::Arc};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use webpki::EndEntityCert;

use super::{
    invalid::Invalid,
    pem::Pem,
    section::{ClientAuthType, Section},
};
use crate::trust::authority_fault;

/// Returns the verifier of client certificates; `None` if none are requested.
pub(super) fn verifier(
    section: &Section,
    authorities: Option<&Pem<'_>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Invalid> {
    let wanted = section.client_auth_type.as_ref().map_or(ClientAuthType::NoClientCert, |it| it.value);
    let verified = match wanted {
        ClientAuthType::NoClientCert => {
            if let Some(authorities) = authorities {
                return Err(authorities.invalid(
                    "clients are not asked for certificates; add client_auth_type: RequireAndVerifyClientCert",
                ));
            }
            None
        }
        ClientAuthType::RequestClientCert | ClientAuthType::RequireAnyClientCert => None,
        ClientAuthType::VerifyClientCertIfGiven | ClientAuthType::RequireAndVerifyClientCert => {
            let is_optional = wanted == ClientAuthType::VerifyClientCertIfGiven;
            Some(trusting(section, authorities, is_optional, provider)?)
        }
    };
    let mandatory =
        matches!(wanted, ClientAuthType::RequireAnyClientCert | ClientAuthType::RequireAndVerifyClientCert);
    let names = section.client_allowed_sans.as_deref().unwrap_or_default();
    if let Some(name) = names.first().filter(|_| !mandatory) {
        let reason =
            "client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert, or RequireAnyClientCert";
        return Err(Invalid::at(name, reason));
    }
    if let Some(address) = names.iter().find(|name| name.value.contains('@') && !name.value.contains(':')) {
        let reason = format!(
            "`{}`: e-mail addresses are not supported; give a DNS name, IP address or URI",
            address.value
        );
        return Err(Invalid::at(address, reason));
    }
    if wanted == ClientAuthType::NoClientCert {
        return Ok(None);
    }
    let names = names.iter().map(|name| name.value.clone()).collect();
    Ok(Some(Arc::new(Clients { verified, mandatory, names, provider: Arc::clone(provider) })))
}

/// Returns a verifier that trusts the authorities.
fn trusting(
    section: &Section,
    authorities: Option<&Pem<'_>>,
    is_optional: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Invalid> {
    let Some(authorities) = authorities else {
        let reason = "there is nothing to verify certificates with; add client_ca_file";
        let value = section.client_auth_type.as_ref();
        return Err(value.map_or_else(
            || Invalid { line: 1, column: 1, reason: reason.to_owned() },
            |it| Invalid::at(it, reason),
        ));
    };
    let mut roots = RootCertStore::empty();
    for certificate in authorities.certificates()? {
        roots.add(certificate).map_err(|error| authorities.invalid(authority_fault(&error)))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = if is_optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| authorities.invalid(error.to_string()))
}

/// Verifies client certificates.
#[derive(Debug)]
struct Clients {
    /// Verifies against the authorities; `None` if any certificate is accepted.
    verified: Option<Arc<dyn ClientCertVerifier>>,
    mandatory: bool,
    /// The allowed names, of which a certificate must have one; empty if any name is allowed.
    names: Vec<String>,
    provider: Arc<CryptoProvider>,
}

impl Clients {
    fn is_allowed(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else { return false };
        self.names.iter().any(|name| match name.parse::<IpAddr>() {
            Ok(address) => certificate.verify_is_valid_for_subject_name(&ServerName::from(address)).is_ok(),
            // Names are compared literally, so that a wildcard certificate does not match.
            Err(_) => certificate.valid_dns_names().chain(certificate.valid_uri_names()).any(|it| it == name),
        })
    }
}

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verified.as_ref().map_or(&[], |verified| verified.root_hint_subjects())
    }

    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(verified) = &self.verified {
            verified.verify_client_cert(end_entity, intermediates, now)?;
        }
        if self.names.is_empty() || self.is_allowed(end_entity) {
            return Ok(ClientCertVerified::assertion());
        }
        Err(Error::General("none of the certificate's names is in client_allowed_sans".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
