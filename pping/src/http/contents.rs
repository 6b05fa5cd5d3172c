//! What the server serves.

use super::readiness::Readiness;
#[cfg(feature = "history")]
use crate::history::Archive;
use crate::{metrics::Metrics, recent::RecentHistory};

/// What the server serves.
#[derive(Clone)]
pub struct Contents {
    pub(super) metrics: Metrics,
    pub(super) recent: RecentHistory,
    pub(super) readiness: Readiness,
    /// The history of months, with `--history`.
    #[cfg(feature = "history")]
    pub(super) archive: Option<Archive>,
}

impl Contents {
    /// Metrics, the recent history, and whether pping is ready.
    pub fn new(metrics: Metrics, recent: RecentHistory, readiness: Readiness) -> Self {
        Self {
            metrics,
            recent,
            readiness,
            #[cfg(feature = "history")]
            archive: None,
        }
    }

    /// Adds the history of months.
    #[cfg(feature = "history")]
    #[must_use]
    pub fn with_archive(self, archive: Option<Archive>) -> Self {
        Self { archive, ..self }
    }
}
