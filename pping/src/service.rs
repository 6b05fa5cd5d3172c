//! A thread that does something beside the agent, and takes commands from it: the HTTP server and the exporter.

use std::{io, sync::mpsc as blocking, thread, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::capabilities;

/// The names of a service's threads, and how many there may be for what blocks.
pub(crate) struct Threads {
    pub(crate) name: &'static str,
    pub(crate) blocking_name: &'static str,
    pub(crate) max_blocking: usize,
}

/// A running service. It runs in a separate thread without capabilities, and the agent never waits
/// for it.
#[derive(Debug)]
pub(crate) struct Service<C> {
    commands: mpsc::UnboundedSender<C>,
    ended: oneshot::Receiver<()>,
}

impl<C: Send + 'static> Service<C> {
    /// Starts the thread, which drops all capabilities, calls `prepare` and then runs the service with what that returned,
    /// until it ends by itself. The service has to end at a command for that, and when all senders of commands
    /// are gone.
    ///
    /// # Errors
    /// That of `prepare`, or if the thread or its runtime cannot be started.
    pub(crate) fn start<P, F, E>(
        threads: Threads,
        prepare: impl FnOnce() -> Result<P, E> + Send + 'static,
        run: impl FnOnce(P, mpsc::UnboundedReceiver<C>) -> F + Send + 'static,
    ) -> Result<Self, E>
    where
        F: Future<Output = ()>,
        E: From<io::Error> + Send + 'static,
    {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (begun, has_begun) = blocking::channel();
        let (over, ended) = oneshot::channel();
        let name = threads.name;
        let body = move || {
            match runtime(&threads).map_err(E::from).and_then(|runtime| Ok((runtime, prepare()?))) {
                Ok((runtime, prepared)) => {
                    begun.send(Ok(())).ok();
                    runtime.block_on(run(prepared, inbox));
                    // Does not wait for what blocks: a lookup of a host, a check of a password.
                    runtime.shutdown_background();
                }
                Err(error) => {
                    begun.send(Err(error)).ok();
                }
            }
            over.send(()).ok();
        };
        thread::Builder::new().name(name.into()).spawn(body)?;
        let unstarted = || io::Error::other(format!("the thread {name} did not start"));
        has_begun.recv().unwrap_or_else(|_| Err(unstarted().into()))?;
        Ok(Self { commands, ended })
    }

    /// Sends a command.
    pub(crate) fn send(&self, command: C) {
        self.commands.send(command).ok();
    }

    /// Sends the command that ends the service, and waits for its end, but not for longer than this.
    pub(crate) async fn stop(self, command: C, patience: Duration) {
        self.send(command);
        // The thread ends by itself, unless a disk hangs.
        timeout(patience, self.ended).await.ok();
    }
}

/// Drops all capabilities before the service reads anything: what it can read now, a reload can read too.
fn runtime(threads: &Threads) -> io::Result<Runtime> {
    capabilities::drop_all().map_err(io::Error::other)?;
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(threads.max_blocking).thread_name(threads.blocking_name).build()
}
