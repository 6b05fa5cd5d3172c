//! What is wrong with a certificate, in words.

use jiff::Timestamp;
use rustls::{
    CertificateError, OtherError,
    pki_types::{ServerName, UnixTime},
};

/// Returns what is wrong with a certificate.
pub(super) fn certificate(error: &CertificateError, option: &str) -> String {
    use CertificateError as Wrong;
    match error {
        Wrong::ExpiredContext { not_after, .. } => format!("expired on {}", utc(*not_after)),
        Wrong::Expired => "has expired".to_owned(),
        Wrong::NotValidYetContext { time, not_before } => format!(
            "is valid from {} on, and here it is {}; check the clocks of both machines",
            utc(*not_before),
            utc(*time)
        ),
        Wrong::NotValidYet => "is not valid yet; check the clocks of both machines".to_owned(),
        Wrong::NotValidForNameContext { expected, presented } => other_name(expected, presented),
        Wrong::NotValidForName => "is for another host".to_owned(),
        error if *error == Wrong::UnknownIssuer || is_authority(error) => format!(
            "was issued by an unknown authority; give the authority's certificate with {option}, or this \
             certificate itself if it is self-signed"
        ),
        Wrong::BadEncoding => "is not an X.509 certificate of version 3".to_owned(),
        Wrong::BadSignature => format!(
            "is not signed by the certificate of the same name that is trusted; was that one renewed? Give the new \
             one with {option}"
        ),
        Wrong::UnsupportedSignatureAlgorithmContext { .. }
        | Wrong::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "has a key or signature that is not supported: use RSA from 2,048 bits on with SHA-256, ECDSA with \
             P-256 or P-384, or Ed25519"
                .to_owned()
        }
        Wrong::InvalidPurpose | Wrong::InvalidPurposeContext { .. } => {
            "is not for servers (extendedKeyUsage)".to_owned()
        }
        Wrong::UnhandledCriticalExtension => "has a critical extension that pping does not know".to_owned(),
        Wrong::Revoked => "was revoked".to_owned(),
        error => format!("cannot be verified ({error})"),
    }
}

/// Returns which names a certificate has instead of the expected one.
fn other_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let expected = expected.to_str();
    // webpki formats a name as its Rust value: `DnsName("localhost")`, `IpAddress(127.0.0.1)`.
    let name = |text: &String| {
        let inner = text.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
        inner.unwrap_or(text).trim_matches('"').to_owned()
    };
    if presented.is_empty() {
        return format!("names no host; issue it with subjectAltName, for {expected}");
    }
    let names: Vec<String> = presented.iter().map(name).collect();
    format!("is for {}, not for {expected}; use one of its names, or issue it for both", names.join(", "))
}

/// Whether a server presented the certificate of an authority.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else { return false };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Formats a time, to the second.
fn utc(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(
        || "a time beyond the calendar".to_owned(),
        |time| time.strftime("%F %T UTC").to_string(),
    )
}
