//! The web configuration: TLS, passwords and headers, in the format of Prometheus' exporter-toolkit, so that one file
//! serves all exporters of a host. Like exporter-toolkit, pping reads the files again when they change.

mod active;
mod clients;
mod file;
mod files;
mod invalid;
mod pem;
mod section;
mod tls;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use self::{active::ActiveConfig, files::Files, invalid::Invalid};
use super::error::Error;

/// How often files are checked for changes while requests arrive.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The web configuration, which may be empty.
pub(super) struct WebConfig {
    state: Mutex<State>,
}

struct State {
    /// Where the server listens.
    address: SocketAddr,
    path: Option<PathBuf>,
    active: Arc<ActiveConfig>,
    files: Files,
    checked: Instant,
}

impl WebConfig {
    /// Reads the file, if there is one. Warns if the server at `address` is exposed.
    ///
    /// # Errors
    /// [`Error::OpenWebConfig`] if the file cannot be read, and [`Error::WebConfig`] if it is invalid.
    pub(super) fn read(address: SocketAddr, path: Option<PathBuf>) -> Result<Self, Error> {
        let mut files = Files::default();
        let active = path.as_deref().map(|path| load(path, &mut files)).transpose()?.unwrap_or_default();
        if let Some(exposure) = active.exposure(address) {
            exposure.warn(address);
        }
        let state = State { address, path, active: active.into(), files, checked: Instant::now() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Returns the active configuration. Reads the files again if they changed.
    pub(super) fn current(&self) -> Arc<ActiveConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.path.is_some() && state.checked.elapsed() >= CHECK_INTERVAL {
            state.checked = Instant::now();
            if state.files.have_changed() {
                let path = state.path.clone();
                state.load(path);
            }
        }
        Arc::clone(&state.active)
    }

    /// Reads all files again. The configuration comes from `path` from now on.
    pub(super) fn reload(&self, path: Option<PathBuf>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).load(path);
    }
}

impl State {
    fn load(&mut self, path: Option<PathBuf>) {
        let mut files = Files::default();
        match path.as_deref().map(|path| load(path, &mut files)).transpose() {
            Ok(config) => {
                if let Some(path) = &path {
                    tracing::info!("--web-config {}: read again", path.display());
                }
                self.activate(config.unwrap_or_default());
                self.path = path;
            }
            Err(error) => tracing::error!("{error}; the active configuration stays as it was"),
        }
        // Also after an error, so that it is logged once and the files are read again only when they change.
        self.files = files;
    }

    /// Activates a configuration. Warns if the server is exposed by it, and was not before.
    fn activate(&mut self, config: ActiveConfig) {
        let before = self.active.exposure(self.address);
        let exposure = config.exposure(self.address);
        if let Some(exposure) = exposure.filter(|_| exposure != before) {
            exposure.warn(self.address);
        }
        self.active = config.into();
    }
}

fn load(path: &Path, files: &mut Files) -> Result<ActiveConfig, Error> {
    let bytes = files.read(path).map_err(|source| Error::OpenWebConfig { path: path.to_owned(), source })?;
    file::parse(&bytes, path.parent().unwrap_or(Path::new("")), files).map_err(
        |Invalid { line, column, reason }| Error::WebConfig { path: path.to_owned(), line, column, reason },
    )
}
