//! Findings: printed when they are found, and again at the end.

use std::{
    fmt::Display,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

/// What all parts of a soak share.
#[derive(Debug)]
pub(super) struct Findings {
    began: Instant,
    found: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Findings {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), found: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Notes something that must not be.
    pub(super) fn note(&self, what: impl Display) {
        let at = self.began.elapsed().as_secs();
        let what = format!("at {}:{:02}: {what}", at / 60, at % 60);
        eprintln!("OFF: {what}");
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Says what goes on.
    pub(super) fn say(&self, what: impl Display) {
        let at = self.began.elapsed().as_secs();
        eprintln!("{:>3}:{:02} {what}", at / 60, at % 60);
    }

    /// All that was noted.
    pub(super) fn all(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has all parts come to their end.
    pub(super) fn end(&self) {
        self.over.store(true, Relaxed);
    }

    /// Whether they are to.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}
