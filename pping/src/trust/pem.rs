//! Certificates and keys in PEM, and in words what is wrong with them.

use rustls::{
    Error,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject as _},
    },
};

use super::certificate::certificate;

/// The file, of a certificate and its key, that is at fault, and what is wrong with it.
#[derive(Debug)]
pub(crate) enum PairFault {
    /// That of the certificate.
    Certificate(String),
    /// That of the key.
    Key(String),
}

/// The certificates in a text, at least one.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match certificates.map_err(|error| syntax(&error))? {
        none if none.is_empty() => Err("it contains no certificate in PEM".to_owned()),
        certificates => Ok(certificates),
    }
}

/// The key in a text.
pub(crate) fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        PemError::NoItemsFound => "it contains no private key in PEM that is not encrypted".to_owned(),
        error => syntax(&error),
    })
}

/// What is wrong with an authority that cannot be trusted.
pub(crate) fn authority_fault(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => format!("it {}", certificate(error, "")),
        error => error.to_string(),
    }
}

/// What is wrong with a certificate and a key that cannot be used together.
pub(crate) fn pair_fault(error: &Error) -> PairFault {
    match error {
        Error::InvalidCertificate(error) => {
            PairFault::Certificate(format!("the certificate {}", certificate(error, "")))
        }
        Error::InconsistentKeys(_) => {
            PairFault::Key("this is not the key of the certificate; give the two that belong together".to_owned())
        }
        // Nothing else is general about a pair.
        Error::General(_) => PairFault::Key(
            "this is no key of a supported kind: use RSA of 2,048 to 4,096 bits, ECDSA with P-256 or P-384, or Ed25519"
                .to_owned(),
        ),
        error => PairFault::Key(error.to_string()),
    }
}

fn syntax(error: &PemError) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches('-').escape_debug().to_string();
    let reason = match error {
        PemError::MissingSectionEnd { end_marker } => {
            format!(
                "the line -----END {}----- is missing, so it was cut off, or not copied as a whole",
                text(end_marker)
            )
        }
        PemError::IllegalSectionStart { line } => {
            format!("the line `-----{}` does not end in -----", text(line))
        }
        PemError::Base64Decode(_) => {
            "something between its BEGIN and its END is not Base64; copy it again as a whole".to_owned()
        }
        error => error.to_string(),
    };
    format!("this is not PEM: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_pem_is_said_in_words() {
        for (text, reason) in [
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "the line -----END CERTIFICATE----- is missing"),
            ("-----BEGIN CERTIFICATE\nAAAA\n", "the line `-----BEGIN CERTIFICATE` does not end in -----"),
            ("-----BEGIN CERTIFICATE-----\nAA!A\n-----END CERTIFICATE-----\n", "is not Base64"),
            ("nothing", "no certificate in PEM"),
        ] {
            let said = certificates(text.as_bytes()).unwrap_err();
            assert!(said.contains(reason), "{said}");
            assert!(!said.contains(['[', '(']), "{said}");
        }
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert!(key(encrypted.as_bytes()).unwrap_err().contains("that is not encrypted"));
        let cut_off = "-----BEGIN PRIVATE KEY-----\nAAAA\n";
        assert!(key(cut_off.as_bytes()).unwrap_err().contains("-----END PRIVATE KEY----- is missing"));
    }
}
