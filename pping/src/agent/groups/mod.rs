//! The groups of a running agent: those of the groups file, which is read at the start and again at each SIGHUP, and those that
//! come by the groups socket. See docs/architecture.md, Groups that change.

mod change_log;
mod client;
mod in_kernel;
mod list;
mod reading;
mod replacement;
mod restore;
mod shared;
mod socket;
mod state;
mod withdrawn;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::{self, JoinHandle};

use self::{shared::Shared, socket::Socket, state::State};
use crate::{
    Error,
    config::Aggregation,
    groups::{Levels, NewestLabels, PrefixRule},
    kernel::{loaded::Kernel, series::SeriesTable},
    metrics::GroupChanges,
    recent::RecentHistory,
};

/// The groups of a running agent.
pub(super) struct Groups {
    /// The file that was read last.
    path: Option<PathBuf>,
    shared: Arc<Shared>,
    /// A reload that is in progress.
    task: Option<JoinHandle<()>>,
    socket: Option<Socket>,
}

impl Groups {
    /// Reads the groups file, and what came by the socket in an earlier run. Begins to listen, but answers nothing yet. Returns
    /// `None` if groups are not listed at all.
    ///
    /// # Errors
    /// If the file cannot be read or has an error, the socket cannot be made, or another pping keeps its groups in the same file.
    pub(super) fn read(aggregation: &Aggregation) -> Result<Option<Self>, Error> {
        let Aggregation { groups: path, groups_socket, groups_state, roll_up, .. } = aggregation;
        if path.is_none() && groups_socket.is_none() {
            return Ok(None);
        }
        let levels = Levels::new(roll_up);
        let mut state = State::default();
        let prefixes = PrefixRule::of(groups_socket.is_some());
        if let Some(path) = path {
            // Columns may also come by the socket.
            let needed = if groups_socket.is_some() { &Levels::default() } else { &levels };
            reading::read_first(&mut state, path, needed, prefixes)?;
        }
        state.set_levels(levels);
        let socket = groups_socket.as_deref().map(Socket::bind).transpose()?;
        if let Some(socket) = &socket {
            restore::restore(&mut state, groups_state.as_deref(), socket.path())?;
        }
        let shared = Arc::new(Shared::new(state, prefixes));
        Ok(Some(Self { path: path.clone(), shared, task: None, socket }))
    }

    /// Adds the labels of the previous run, which may have no prefix any more.
    pub(super) fn remember(&self, labels: &[String]) {
        self.shared.lock().remember(labels);
    }

    /// Applies the groups for the first time.
    ///
    /// # Errors
    /// If the kernel has no room for their prefixes.
    pub(super) fn apply(&self, kernel: &mut Kernel, recent: &RecentHistory) -> Result<(), Error> {
        let mut state = self.shared.lock();
        state.enter(kernel)?;
        state.show_on(recent.clone());
        Ok(())
    }

    /// Begins to answer at the socket, if there is one.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        match &mut self.socket {
            Some(socket) => Ok(socket.open(Arc::clone(&self.shared))?),
            None => Ok(()),
        }
    }

    /// The newest labels.
    pub(super) fn newest_labels(&self) -> NewestLabels {
        self.shared.lock().newest_labels()
    }

    /// Starts reading this file, while packets are still counted by the current groups. The tree has these levels once it is
    /// read.
    pub(super) fn reload(&mut self, path: &Path, levels: Levels) {
        self.path = Some(path.to_owned());
        if self.task.is_some() {
            tracing::warn!("--groups {}: the last change is still in progress; reload again", path.display());
            return;
        }
        let (path, shared) = (path.to_owned(), Arc::clone(&self.shared));
        self.task = Some(task::spawn_blocking(move || {
            if let Err(error) = reading::reload(&shared, &path, levels) {
                tracing::error!("{error}; the groups stay as they were");
            }
        }));
    }

    /// Waits for the end of a reload, forever if there is none.
    pub(super) async fn reloaded(&mut self) {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let done = task.await;
        self.task = None;
        if let Err(error) = done {
            // The task panicked. The current groups stay.
            self.shared.lock().end_reload();
            let path = self.path.clone().unwrap_or_default();
            tracing::error!("--groups {}: {error}", path.display());
        }
    }

    /// Whether another file took effect since the last call.
    pub(super) fn has_switched(&self) -> bool {
        self.shared.take_switched()
    }

    /// Forgets labels that neither a prefix nor a series has any more. Does nothing while others use the groups.
    pub(super) fn forget_unused(&self, series: &SeriesTable) {
        if let Some(mut state) = self.shared.try_lock() {
            state.forget_unused(series);
        }
    }

    /// The counts of prefixes and of changes. `None` without a socket, and while others use the groups.
    pub(super) fn changes(&self) -> Option<GroupChanges> {
        self.socket.as_ref()?;
        self.shared.try_lock().map(|state| state.changes())
    }

    /// Stops answering, removes the socket, and waits until everything is kept.
    pub(super) fn close(self) {
        let Self { socket, shared, .. } = self;
        if let Some(socket) = socket {
            socket.close();
        }
        shared.lock().close();
    }
}
