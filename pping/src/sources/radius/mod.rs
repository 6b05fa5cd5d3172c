//! `pping groups radius`: a server of RADIUS accounting (RFC 2866).

mod adopted;
mod packet;
mod report;
mod secrets;
mod server;
mod sessions;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;

use self::{report::LabelBy, secrets::Secrets, server::Server};
use super::{
    error::Error,
    run::{give_up_privileges, until_stopped},
};
use crate::log::say_started;

/// The options of `pping groups radius`.
#[derive(Clone, Debug, Args)]
pub struct RadiusArguments {
    /// Listen at this address for accounting requests
    ///
    /// A NAS may insist on an answer from the address that it asked, so on a host with several addresses name one of them.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1813")]
    pub listen: SocketAddr,
    /// Read the secret from this file: one for all clients, or a line `PREFIX SECRET` for each prefix of clients
    ///
    /// Others than its user and its group must not be able to read it. Lines that begin with `#` are comments. A secret has no
    /// spaces. Of several prefixes the longest counts; a client that has no secret gets no answer.
    #[arg(long, value_name = "FILE")]
    pub secret_file: PathBuf,
    /// Name sessions after this attribute
    #[arg(long, value_enum, value_name = "ATTRIBUTE", default_value_t = LabelBy::UserName)]
    pub label_by: LabelBy,
    /// End a session that has not reported for this long (default: three of its intervals, and 24h if it sends no updates)
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub expire: Option<Duration>,
}

/// Listens until it is stopped.
///
/// # Errors
/// If it cannot listen, or the secrets cannot be used.
pub(super) fn run(arguments: RadiusArguments, socket: PathBuf, source: Arc<str>) -> Result<(), Error> {
    give_up_privileges()?;
    let RadiusArguments { listen, secret_file, label_by, expire } = arguments;
    let secrets = Secrets::read(&secret_file)?;
    let server = Server::bind(listen, secrets, label_by, expire)?;
    say_started(&format!("taking RADIUS accounting at {}", server.address()));
    until_stopped(move |stop| server.run(stop, socket, source))
}
