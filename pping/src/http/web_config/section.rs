//! The section `tls_server_config`.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::invalid::Text;

/// The section of the file.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
    pub(super) cert_file: Option<Text>,
    pub(super) key_file: Option<Text>,
    pub(super) client_ca: Option<Text>,
    pub(super) client_ca_file: Option<Text>,
    pub(super) client_auth_type: Option<Spanned<ClientAuthType>>,
    pub(super) client_allowed_sans: Option<Vec<Text>>,
    pub(super) min_version: Option<Text>,
    pub(super) max_version: Option<Text>,
    pub(super) cipher_suites: Option<Vec<Text>>,
    pub(super) curve_preferences: Option<Vec<Text>>,
    pub(super) prefer_server_cipher_suites: Option<bool>,
}

/// The certificate that a client needs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum ClientAuthType {
    /// None.
    #[default]
    NoClientCert,
    /// Any certificate, or none.
    RequestClientCert,
    /// Any certificate.
    #[serde(alias = "RequireClientCert")]
    RequireAnyClientCert,
    /// A certificate of a trusted authority, or none.
    VerifyClientCertIfGiven,
    /// A certificate of a trusted authority.
    RequireAndVerifyClientCert,
}
