//! Quality of Outcome (draft-ietf-ippm-qoo-11): scores a network by the needs of an application.
//!
//! A profile has the requirements for optimal performance and the conditions at the point of unacceptable performance. The
//! score is 100 at the former, 0 at the latter, and proportional in between. docs/groups.md says which inputs are exact here
//! and which are proxies.

mod file;
mod profile;
mod score;

use std::sync::Arc;

use indexmap::IndexMap;
use pping_common::limits::SECOND;
#[cfg(feature = "live")]
use pping_common::method::Method;

pub use self::{
    file::load,
    profile::{Latency, Profile, Profiles, Threshold},
    score::ScoreInput,
};

#[cfg(feature = "live")]
use crate::aggregate::Measurements;

/// The score by each profile, from 0 to 100; `None` is unknown.
pub type Scores = IndexMap<Arc<str>, Option<u8>>;

/// The throughput, bits per second, of `bytes` bytes in `time` ns.
pub fn throughput(bytes: u64, time: u64) -> f64 {
    bytes as f64 * 8.0 * SECOND as f64 / time.max(1) as f64
}

/// Scores a measurement by each profile.
pub fn scores<B: Iterator<Item = (usize, u64)>>(
    profiles: &[Profile],
    measured: &ScoreInput<impl Fn() -> B>,
) -> Scores {
    profiles.iter().map(|profile| (Arc::clone(&profile.name), profile.score(measured))).collect()
}

/// Scores what was measured of a series of a method by each profile.
#[cfg(feature = "live")]
pub(crate) fn scores_of(measured: &Measurements, method: Method, profiles: &[Profile]) -> Scores {
    let throughput = throughput(measured.max_bytes_per_second, SECOND);
    let Measurements { range, traffic, .. } = *measured;
    scores(profiles, &ScoreInput { method, bins: || measured.wide_bins(), range, traffic, throughput })
}
