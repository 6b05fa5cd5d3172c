//! The web configuration: TLS, passwords and headers, by the conventions of Prometheus' exporter-toolkit, so that one
//! file serves all exporters of a host. As there, files that change are read again without being asked to.

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

/// How often files are looked at, while there are requests.
const LOOK: Duration = Duration::from_secs(1);

/// What is in force.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) tls: Option<TlsAcceptor>,
    /// Whether only those can connect whose certificate a known authority vouches for.
    verifies_clients: bool,
    pub(super) users: Users,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl Settings {
    /// Says who can read along, if that is more than this host.
    pub(super) fn warn_if_exposed(&self, address: SocketAddr) {
        if address.ip().to_canonical().is_loopback() {
            return;
        }
        if self.users.is_empty() && !self.verifies_clients {
            tracing::warn!(
                "--listen {address}: everybody who reaches this address can read which hosts talk; listen at 127.0.0.1, \
                 or ask for passwords with --web-config"
            );
        } else if self.tls.is_none() {
            tracing::warn!(
                "--listen {address}: passwords come over the network as plain text; add tls_server_config to the \
                 --web-config"
            );
        }
    }
}

/// A web configuration, or none.
pub(super) struct WebConfig {
    state: Mutex<State>,
}

struct State {
    path: Option<PathBuf>,
    settings: Arc<Settings>,
    files: Files,
    looked: Instant,
}

impl WebConfig {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn read(path: Option<PathBuf>) -> Result<Self, Error> {
        let mut files = Files::default();
        let settings = path.as_deref().map(|path| load(path, &mut files)).transpose()?.unwrap_or_default();
        let state = State { path, settings: settings.into(), files, looked: Instant::now() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// What is in force now.
    pub(super) fn current(&self) -> Arc<Settings> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.path.is_some() && state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            if state.files.have_changed() {
                let path = state.path.clone();
                state.load(path);
            }
        }
        Arc::clone(&state.settings)
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
            Ok(settings) => {
                if let Some(path) = &path {
                    tracing::info!("--web-config {}: read again", path.display());
                }
                self.settings = settings.unwrap_or_default().into();
                self.path = path;
            }
            Err(error) => tracing::error!("{error}; what was in force stays so"),
        }
        // After an error too: it is said once, and the files are read again when somebody has mended them.
        self.files = files;
    }
}

/// Files that were read, as they were then.
#[derive(Default)]
struct Files(Vec<(PathBuf, Option<Stamp>)>);

/// What changes with a file: its inode, size, and the times of its content and of itself.
type Stamp = (u64, u64, [i64; 4]);

impl Files {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        // The stamp comes first: what changes in between is noticed the next time.
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

/// What is wrong, and where.
#[derive(Debug)]
struct Fault {
    line: u64,
    column: u64,
    reason: String,
}

fn load(path: &Path, files: &mut Files) -> Result<Settings, Error> {
    let bytes = files.read(path).map_err(|source| Error::OpenWebConfig { path: path.to_owned(), source })?;
    file::settings(&bytes, path.parent().unwrap_or(Path::new("")), files).map_err(
        |Fault { line, column, reason }| Error::WebConfig { path: path.to_owned(), line, column, reason },
    )
}
