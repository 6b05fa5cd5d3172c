//! A thread that acts once a second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// The thread. It ends on drop.
pub(super) struct EverySecond {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EverySecond {
    /// Starts the thread, which acts for the first time at once.
    pub(super) fn start(mut act: impl FnMut() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !watched.load(Ordering::Relaxed) {
                act();
                thread::sleep(Duration::from_secs(1));
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for EverySecond {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic has already been printed.
            thread.join().ok();
        }
    }
}
