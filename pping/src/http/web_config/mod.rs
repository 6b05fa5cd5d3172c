//! The web configuration: TLS, passwords and headers, in the format of Prometheus' exporter-toolkit, so that one file
//! serves all exporters of a host. As there, files are read again when they change.

mod clients;
mod file;
mod tls;

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderName, HeaderValue};
use tokio_rustls::TlsAcceptor;

use super::Error;
use super::{auth::Users, rate::RateLimit};

/// How often to check whether files changed, while there are requests.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The configuration in force.
#[derive(Default)]
pub(super) struct InForce {
    pub(super) tls: Option<TlsAcceptor>,
    /// Whether clients need a certificate of a trusted authority.
    verifies_clients: bool,
    pub(super) users: Users,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl InForce {
    /// Warns if clients on other hosts can read the metrics, or passwords are sent in plain text.
    pub(super) fn warn_if_exposed(&self, address: SocketAddr) {
        if address.ip().to_canonical().is_loopback() {
            return;
        }
        if self.users.is_empty() && !self.verifies_clients {
            tracing::warn!(
                "--listen {address}: everybody who reaches this address can read which hosts talk; listen at 127.0.0.1, \
                 or require passwords with --web-config"
            );
        } else if self.tls.is_none() {
            tracing::warn!(
                "--listen {address}: passwords are sent over the network in plain text; add tls_server_config to the \
                 --web-config"
            );
        }
    }
}

/// The web configuration, which may be empty.
pub(super) struct WebConfig {
    state: Mutex<State>,
}

struct State {
    path: Option<PathBuf>,
    in_force: Arc<InForce>,
    files: Files,
    checked: Instant,
}

impl WebConfig {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// [`Error::OpenWebConfig`] and [`Error::WebConfig`].
    pub(super) fn read(path: Option<PathBuf>) -> Result<Self, Error> {
        let mut files = Files::default();
        let in_force = path.as_deref().map(|path| load(path, &mut files)).transpose()?.unwrap_or_default();
        let state = State { path, in_force: in_force.into(), files, checked: Instant::now() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// The configuration in force. Reads the files again if they changed.
    pub(super) fn current(&self) -> Arc<InForce> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.path.is_some() && state.checked.elapsed() >= CHECK_INTERVAL {
            state.checked = Instant::now();
            if state.files.have_changed() {
                let path = state.path.clone();
                state.load(path);
            }
        }
        Arc::clone(&state.in_force)
    }

    /// Reads all files again, and the configuration from `path` from now on.
    pub(super) fn reload(&self, path: Option<PathBuf>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).load(path);
    }
}

impl State {
    fn load(&mut self, path: Option<PathBuf>) {
        let mut files = Files::default();
        match path.as_deref().map(|path| load(path, &mut files)).transpose() {
            Ok(in_force) => {
                if let Some(path) = &path {
                    tracing::info!("--web-config {}: read again", path.display());
                }
                self.in_force = in_force.unwrap_or_default().into();
                self.path = path;
            }
            Err(error) => tracing::error!("{error}; the configuration in force stays as it was"),
        }
        // After an error too, which is logged once: the files are read again when they change.
        self.files = files;
    }
}

/// The files that were read, with their stamps at that time.
#[derive(Default)]
struct Files(Vec<(PathBuf, Option<Stamp>)>);

/// What identifies the content of a file: inode, size, mtime and ctime.
type Stamp = (u64, u64, [i64; 4]);

impl Files {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        // Before the content, so that a change in between is noticed the next time.
        self.0.push((path.to_owned(), stamp(path)));
        fs::read(path)
    }

    fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, stamped)| stamp(path) != *stamped)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let it = fs::metadata(path).ok()?;
    Some((it.ino(), it.size(), [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()]))
}

/// An invalid value, with its position in the file.
#[derive(Debug)]
struct Invalid {
    /// From 1.
    line: u64,
    /// In characters, from 1.
    column: u64,
    /// What is wrong, and what would be right.
    reason: String,
}

fn load(path: &Path, files: &mut Files) -> Result<InForce, Error> {
    let bytes = files.read(path).map_err(|source| Error::OpenWebConfig { path: path.to_owned(), source })?;
    file::parse(&bytes, path.parent().unwrap_or(Path::new("")), files).map_err(
        |Invalid { line, column, reason }| Error::WebConfig { path: path.to_owned(), line, column, reason },
    )
}
