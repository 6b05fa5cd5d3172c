//! Findings: printed when they are found, and again at the end.

use std::{
    fmt::Display,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

/// The findings, and whether the soak is over. All parts of a soak share it.
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

    /// Notes a finding.
    pub(super) fn note(&self, what: impl Display) {
        let at = self.began.elapsed().as_secs();
        let what = format!("at {}:{:02}: {what}", at / 60, at % 60);
        eprintln!("OFF: {what}");
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Prints progress.
    pub(super) fn say(&self, what: impl Display) {
        let at = self.began.elapsed().as_secs();
        eprintln!("{:>3}:{:02} {what}", at / 60, at % 60);
    }

    /// Returns all findings.
    pub(super) fn all(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells all parts to end.
    pub(super) fn end(&self) {
        self.over.store(true, Relaxed);
    }

    /// Whether the parts should end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}
