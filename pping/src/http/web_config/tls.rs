//! TLS, as `tls_server_config` wants it.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject as _},
    },
    version::{TLS12, TLS13},
};
use serde::Deserialize;
use serde_saphyr::Spanned;
use tokio_rustls::TlsAcceptor;

use super::{
    Fault, Files,
    clients::{self, ClientAuthType},
    file::Text,
};

/// The section of the file.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    cert: Option<Text>,
    key: Option<Text>,
    cert_file: Option<Text>,
    key_file: Option<Text>,
    pub(super) client_ca: Option<Text>,
    pub(super) client_ca_file: Option<Text>,
    pub(super) client_auth_type: Option<Spanned<ClientAuthType>>,
    pub(super) client_allowed_sans: Option<Vec<Text>>,
    min_version: Option<Text>,
    max_version: Option<Text>,
    cipher_suites: Option<Vec<Text>>,
    curve_preferences: Option<Vec<Text>>,
    prefer_server_cipher_suites: Option<bool>,
}

/// A server, and whether it only lets in those whose certificate it has verified. None, if the section says nothing.
pub(super) fn server(
    section: Spanned<Section>,
    directory: &Path,
    files: &mut Files,
) -> Result<Option<(TlsAcceptor, bool)>, Fault> {
    if section.value == Section::default() {
        return Ok(None);
    }
    let place = Fault::of(&section, String::new());
    let missing = |what: &str| Fault {
        reason: format!("{what} is missing; without it there is no TLS"),
        line: place.line,
        column: place.column,
    };
    let section = section.value;
    let mut pem = |name, text, file| Pem::read(name, text, file, directory, files);
    let certificate = pem("cert", section.cert.as_ref(), section.cert_file.as_ref())?;
    let certificate = certificate.ok_or_else(|| missing("cert_file"))?;
    let key = pem("key", section.key.as_ref(), section.key_file.as_ref())?;
    let key = key.ok_or_else(|| missing("key_file"))?;
    let authorities = pem("client_ca", section.client_ca.as_ref(), section.client_ca_file.as_ref())?;

    let provider = Arc::new(provider(&section)?);
    let clients = clients::verifier(&section, authorities.as_ref(), &provider)?;
    let verifies_clients = section
        .client_auth_type
        .as_ref()
        .is_some_and(|it| it.value == ClientAuthType::RequireAndVerifyClientCert);
    let versions = versions(&section)?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| key.fault(format!("no TLS with this: {error}")))?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let chain = certificate.certificates()?;
    let mut config = builder
        .with_single_cert(chain, key.key()?)
        .map_err(|error| key.fault(format!("this key and the certificate cannot be used: {error}")))?;
    config.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some((TlsAcceptor::from(Arc::new(config)), verifies_clients)))
}

/// The algorithms there are, less those that a list leaves out.
fn provider(section: &Section) -> Result<CryptoProvider, Fault> {
    let mut provider = ring::default_provider();
    if let Some(names) = section.cipher_suites.as_deref().filter(|names| !names.is_empty()) {
        let chosen = choose(names, &provider.cipher_suites, |suite| suite_name(*suite))?;
        // As with Go, where the list is of those up to TLS 1.2 and the others are always there.
        provider.cipher_suites.retain(|suite| suite.tls13().is_some());
        provider.cipher_suites.extend(chosen.into_iter().filter(|suite| suite.tls13().is_none()));
    }
    if let Some(names) = section.curve_preferences.as_deref().filter(|names| !names.is_empty()) {
        provider.kx_groups = choose(names, &provider.kx_groups, |group| group_name(*group))?;
    }
    Ok(provider)
}

/// Those that are named, in that order.
fn choose<T: Copy>(names: &[Text], supported: &[T], name: impl Fn(&T) -> String) -> Result<Vec<T>, Fault> {
    let one = |wanted: &Text| {
        supported.iter().find(|it| name(it) == wanted.value).copied().ok_or_else(|| {
            let all: Vec<String> = supported.iter().map(&name).collect();
            Fault::of(wanted, format!("`{}` is not supported; there are {}", wanted.value, all.join(", ")))
        })
    };
    names.iter().map(one).collect()
}

/// As the registry of IANA has it, and Go.
fn suite_name(suite: SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

/// As Go has it.
fn group_name(group: &dyn SupportedKxGroup) -> String {
    format!("{:?}", group.name()).replace("secp256r1", "CurveP256").replace("secp384r1", "CurveP384")
}

fn versions(section: &Section) -> Result<Vec<&'static SupportedProtocolVersion>, Fault> {
    let all = [("TLS12", &TLS12), ("TLS13", &TLS13)];
    let place = |text: &Text| {
        all.iter().position(|(name, _)| *name == text.value).ok_or_else(|| {
            let reason = format!("`{}` is not supported; there are TLS12 and TLS13", text.value);
            Fault::of(text, reason)
        })
    };
    let lowest = section.min_version.as_ref().map_or(Ok(0), place)?;
    let highest = section.max_version.as_ref().map_or(Ok(all.len() - 1), place)?;
    match (&section.min_version, lowest > highest) {
        (Some(text), true) => Err(Fault::of(text, "this is more than max_version; exchange the two")),
        _ => Ok(all[lowest..=highest].iter().map(|(_, version)| *version).collect()),
    }
}

/// Something in PEM, and the value that it is from.
pub(super) struct Pem<'a> {
    bytes: Vec<u8>,
    value: &'a Text,
    from: String,
}

impl<'a> Pem<'a> {
    /// What is given as `name`, or in the file `name_file`.
    fn read(
        name: &str,
        text: Option<&'a Text>,
        file: Option<&'a Text>,
        directory: &Path,
        files: &mut Files,
    ) -> Result<Option<Self>, Fault> {
        let is_given = |it: &&Text| !it.value.is_empty();
        match (text.filter(is_given), file.filter(is_given)) {
            (None, None) => Ok(None),
            (Some(value), None) => {
                Ok(Some(Self { bytes: value.value.clone().into_bytes(), value, from: name.to_owned() }))
            }
            (None, Some(value)) => {
                let path = directory.join(&value.value);
                let from = format!("{name}_file {}", path.display());
                match files.read(&path) {
                    Ok(bytes) => Ok(Some(Self { bytes, value, from })),
                    Err(error) => Err(Fault::of(value, format!("{from}: {error}"))),
                }
            }
            (Some(_), Some(value)) => {
                Err(Fault::of(value, format!("there is {name} already; leave one of the two out")))
            }
        }
    }

    pub(super) fn fault(&self, reason: impl AsRef<str>) -> Fault {
        Fault::of(self.value, format!("{}: {}", self.from, reason.as_ref()))
    }

    /// All certificates in it, of which there is one at least.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Fault> {
        let all: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        let all = all.map_err(|error| self.fault(format!("this is no PEM: {error}")))?;
        if all.is_empty() {
            return Err(self.fault("there is no certificate in PEM in it"));
        }
        Ok(all)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Fault> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            PemError::NoItemsFound => {
                self.fault("there is no private key in PEM in it that is not encrypted")
            }
            error => self.fault(format!("this is no PEM: {error}")),
        })
    }
}
