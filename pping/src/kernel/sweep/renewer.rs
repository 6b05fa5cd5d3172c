//! A thread that renews the lease of the programs, whatever else the agent waits for: the kernel changes one interface
//! at a time, across all namespaces, and can take seconds to attach a program.

use std::{
    convert::Infallible,
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use pping_common::limits::LEASE_SECONDS;

use super::requests::SharedRequests;
use crate::capabilities;

/// The interval between two renewals: several fit into a lease, in case one is late.
const INTERVAL: Duration = Duration::from_millis(1000 * LEASE_SECONDS / 5);

/// Renews the lease until it is dropped.
pub(super) struct LeaseRenewer {
    /// `None` once the thread is to end.
    alive: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl LeaseRenewer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(super) fn start(requests: SharedRequests) -> io::Result<Self> {
        let (alive, ended) = mpsc::channel::<Infallible>();
        let keep = move || {
            if let Err(error) = capabilities::restrict_to(&capabilities::FOR_RUNS) {
                tracing::warn!(
                    "the thread that renews the lease could not drop the capabilities that it does not need: {error}"
                );
            }
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = requests.lock().renew() {
                    // The next sweep fails too, and its error ends the agent.
                    tracing::debug!("the lease of the programs was not renewed: {error}");
                }
            }
        };
        let thread = thread::Builder::new().name("pping-lease".into()).spawn(keep)?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for LeaseRenewer {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by then.
            let _ended = thread.join();
        }
    }
}
