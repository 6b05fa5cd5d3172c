//! TLS, as `tls_server_config` describes it.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    version::{TLS12, TLS13},
};
use serde_saphyr::Spanned;
use tokio_rustls::TlsAcceptor;

use super::{
    clients,
    files::Files,
    invalid::{Invalid, Text},
    pem::Pem,
    section::{ClientAuthType, Section},
};
use crate::trust::{PairFault, pair_fault};

/// Returns the TLS acceptor, and whether clients need a verified certificate; `None` if the section is empty.
pub(super) fn server(
    section: Spanned<Section>,
    directory: &Path,
    files: &mut Files,
) -> Result<Option<(TlsAcceptor, bool)>, Invalid> {
    if section.value == Section::default() {
        return Ok(None);
    }
    let start = Invalid::at(&section, String::new());
    let missing = |what: &str| Invalid { reason: format!("{what} is missing; TLS needs it"), ..start };
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
        .map_err(|error| key.invalid(format!("TLS cannot be set up with this: {error}")))?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let chain = certificate.certificates()?;
    let config = builder.with_single_cert(chain, key.key()?);
    let mut config = config.map_err(|error| match pair_fault(&error) {
        PairFault::Certificate(reason) => certificate.invalid(reason),
        PairFault::Key(reason) => key.invalid(reason),
    })?;
    config.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some((TlsAcceptor::from(Arc::new(config)), verifies_clients)))
}

/// Returns the algorithms of ring that the section allows.
fn provider(section: &Section) -> Result<CryptoProvider, Invalid> {
    let mut provider = ring::default_provider();
    if let Some(names) = section.cipher_suites.as_deref().filter(|names| !names.is_empty()) {
        let chosen = choose(names, &provider.cipher_suites, |suite| suite_name(*suite))?;
        // As in Go, the list chooses suites up to TLS 1.2; those of TLS 1.3 are always enabled.
        provider.cipher_suites.retain(|suite| suite.tls13().is_some());
        provider.cipher_suites.extend(chosen.into_iter().filter(|suite| suite.tls13().is_none()));
    }
    if let Some(names) = section.curve_preferences.as_deref().filter(|names| !names.is_empty()) {
        provider.kx_groups = choose(names, &provider.kx_groups, |group| group_name(*group))?;
    }
    Ok(provider)
}

/// Returns the supported values with these names, in the order of the names.
fn choose<T: Copy>(names: &[Text], supported: &[T], name: impl Fn(&T) -> String) -> Result<Vec<T>, Invalid> {
    let one = |wanted: &Text| {
        supported.iter().find(|it| name(it) == wanted.value).copied().ok_or_else(|| {
            let all: Vec<String> = supported.iter().map(&name).collect();
            Invalid::at(wanted, format!("`{}` is not supported; there are {}", wanted.value, all.join(", ")))
        })
    };
    names.iter().map(one).collect()
}

/// Returns the IANA name, which Go uses too.
fn suite_name(suite: SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

/// Returns the name that Go uses.
fn group_name(group: &dyn SupportedKxGroup) -> String {
    format!("{:?}", group.name()).replace("secp256r1", "CurveP256").replace("secp384r1", "CurveP384")
}

fn versions(section: &Section) -> Result<Vec<&'static SupportedProtocolVersion>, Invalid> {
    let all = [("TLS12", &TLS12), ("TLS13", &TLS13)];
    let position = |text: &Text| {
        all.iter().position(|(name, _)| *name == text.value).ok_or_else(|| {
            let reason = format!("`{}` is not supported; there are TLS12 and TLS13", text.value);
            Invalid::at(text, reason)
        })
    };
    let lowest = section.min_version.as_ref().map_or(Ok(0), position)?;
    let highest = section.max_version.as_ref().map_or(Ok(all.len() - 1), position)?;
    match (&section.min_version, lowest > highest) {
        (Some(text), true) => Err(Invalid::at(text, "this is higher than max_version; exchange the two")),
        _ => Ok(all[lowest..=highest].iter().map(|(_, version)| *version).collect()),
    }
}
