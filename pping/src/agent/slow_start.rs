//! Saying what a start waits for, if it takes long: on a busy machine, the kernel verifies the programs for some seconds.

use std::{
    io,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::log;

/// After this time, what a start waits for is said.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says what is going on unless it is dropped within [`PATIENCE`].
pub(super) struct SlowStart {
    is_done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SlowStart {
    /// Begins to wait. Loading blocks the thread that calls this, so another one waits.
    ///
    /// # Errors
    /// If the thread cannot start.
    pub(super) fn begin(what: &'static str) -> io::Result<Self> {
        let (is_done, done) = channel();
        let say = move || {
            if done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                log::say_started(what);
            }
        };
        let thread = thread::Builder::new().name("pping-start".into()).spawn(say)?;
        Ok(Self { is_done: Some(is_done), thread: Some(thread) })
    }
}

impl Drop for SlowStart {
    fn drop(&mut self) {
        self.is_done.take();
        // It ends at once, and must not outlive the privileges that are given up after a start.
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
