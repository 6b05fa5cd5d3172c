//! Errors of TLS in words: what is wrong with whose certificate, and what to do.

use std::{error::Error as StdError, io, iter};

use rustls::{AlertDescription as Alert, Error};

use super::certificate::certificate;

/// Returns the reason in words if an error, or a cause of it, is one of TLS. `option` names the file of authorities.
pub(crate) fn reason(error: &(dyn StdError + 'static), option: &str) -> Option<String> {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    causes.find_map(tls_error).map(|error| in_words(error, option))
}

/// Returns the error of TLS that an error is, or that it wraps.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    // An I/O error hides the error that it wraps from `source`.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| inner?.downcast_ref())
}

fn in_words(error: &Error, option: &str) -> String {
    match error {
        Error::InvalidCertificate(error) => format!("its certificate {}", certificate(error, option)),
        Error::AlertReceived(alert) => refusal(*alert),
        Error::InvalidMessage(_) => "it does not speak TLS; is its URL http://?".to_owned(),
        error => error.to_string(),
    }
}

/// Returns why the other side refuses this one.
fn refusal(alert: Alert) -> String {
    match alert {
        Alert::CertificateRequired => "it requires a certificate of the client, and got none".to_owned(),
        Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::CertificateRevoked
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied
        | Alert::DecryptError => {
            format!("it does not accept the certificate of this client ({alert:?})")
        }
        Alert::HandshakeFailure | Alert::ProtocolVersion | Alert::InsufficientSecurity => {
            format!("it offers no version or cipher of TLS 1.2 or 1.3 that pping supports ({alert:?})")
        }
        alert => format!("it ended the connection with the TLS alert {alert:?}"),
    }
}
