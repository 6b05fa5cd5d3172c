//! Quality of Outcome (draft-ietf-ippm-qoo-11): scores of a network for what an application needs of it.
//!
//! A profile has the requirements for optimal performance and the conditions at the point of unacceptable performance. The score is 100
//! at the one, 0 at the other, and in between in proportion. docs/quality.md says what of it is exact here, and what a proxy.

mod file;
mod profile;
mod score;

use std::sync::Arc;

use indexmap::IndexMap;
use pping_common::limits::SECOND;

pub use self::{
    file::load,
    profile::{Latency, Profile, Profiles, Threshold},
    score::Measured,
};

/// The score by each profile, from 0 to 100; `None` is unknown.
pub type Scores = IndexMap<Arc<str>, Option<u8>>;

/// Bits per second of so many bytes in a time, ns.
pub fn throughput(bytes: u64, time: u64) -> f64 {
    bytes as f64 * 8.0 * SECOND as f64 / time.max(1) as f64
}

/// The scores of what was measured.
pub fn scores<B: Iterator<Item = (usize, u64)>>(
    profiles: &[Profile],
    measured: &Measured<impl Fn() -> B>,
) -> Scores {
    profiles.iter().map(|profile| (Arc::clone(&profile.name), profile.score(measured))).collect()
}
