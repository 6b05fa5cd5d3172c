//! The kernel programs as they were compiled, each set for other kernels.

use super::features::{Feature, Features};

static NEWEST: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs"));

/// For kernels that lack [`Feature::Tcx`]: without the short way, behind which Linux 6.1 verifies too much.
static LONG_WAY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs-long-way"));

/// For kernels that lack [`Feature::Fetch`] too.
static ADD_ONLY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs-add-only"));

/// Those that a kernel accepts.
pub(super) fn fitting(features: Features) -> &'static [u8] {
    match (features.has(Feature::Fetch), features.has(Feature::Tcx)) {
        (false, _) => ADD_ONLY,
        (true, false) => LONG_WAY,
        (true, true) => NEWEST,
    }
}
