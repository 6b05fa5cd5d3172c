//! Work that may block, of which a bounded number runs at a time.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::spawn_blocking};

/// A bounded number of workers. Cloning gives another handle to the same ones.
#[derive(Clone, Debug)]
pub(super) struct Workers(Arc<Semaphore>);

impl Workers {
    /// Creates workers, of which `count` work at a time.
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Runs `work` on a thread that may block, as soon as a worker is free. Returns `None` if it panicked. A request that
    /// is aborted while it waits leaves the queue; work that has begun is finished.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let run = move || {
            let result = work();
            // The permit is held until here even if the client has disconnected.
            drop(permit);
            result
        };
        spawn_blocking(run).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tokio::{runtime::Builder, sync::oneshot, time::timeout};

    use super::*;

    /// Long enough for work to begin if a worker were free.
    const WHILE: Duration = Duration::from_millis(50);

    #[test]
    fn aborting_frees_queued_work_only() {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let workers = Workers::new(1);
            let (begin, has_begun) = oneshot::channel();
            let (release, is_released) = mpsc::channel();
            let slow = workers.clone();
            let slow = tokio::spawn(async move {
                let work = move || {
                    begin.send(()).ok();
                    is_released.recv().is_ok()
                };
                slow.run(work).await
            });
            has_begun.await.unwrap();
            slow.abort();
            assert!(slow.await.unwrap_err().is_cancelled());
            let (run, has_run) = mpsc::channel();
            let queued = workers.run(move || run.send(()).is_ok());
            assert!(timeout(WHILE, queued).await.is_err(), "it does not wait for the one that has begun");
            release.send(()).unwrap();
            assert_eq!(workers.run(|| 7).await, Some(7));
            assert!(has_run.try_recv().is_err(), "aborted work has run");
        });
    }
}
