//! TLS: the authorities that vouch for a server, a client's own certificate, and the files that people keep both in.

mod certificate;
#[cfg(any(feature = "otlp", feature = "top"))]
mod client;
mod pem;
#[cfg(any(feature = "otlp", feature = "top"))]
mod reason;
#[cfg(any(feature = "otlp", feature = "top"))]
mod server;

#[cfg(feature = "top")]
pub(crate) use client::Identity;
#[cfg(any(feature = "otlp", feature = "top"))]
pub(crate) use client::{TlsError, Trusted, client};
pub(crate) use pem::{PairFault, authority_fault, certificates, key, pair_fault};
#[cfg(any(feature = "otlp", feature = "top"))]
pub(crate) use reason::reason;
