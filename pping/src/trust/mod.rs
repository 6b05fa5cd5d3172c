//! TLS: the authorities that vouch for a server, a client's own certificate, and the files that people keep both in.

mod certificate;
mod client;
mod pem;
mod reason;
mod server;

pub(crate) use client::Identity;
pub(crate) use client::{TlsError, Trusted, client};
pub(crate) use pem::{PairFault, authority_fault, certificates, key, pair_fault};
pub(crate) use reason::reason;
