//! The features of this kernel.

use pping::kernel::features::{DisabledFeatures, Feature, Features};

use super::report::feature;

/// True if links attach tc programs.
pub(super) fn has_tcx() -> bool {
    Features::probe(DisabledFeatures::NOTHING).unwrap().has(Feature::Tcx)
}

/// True if atomic instructions return the old value.
pub(super) fn has_fetch() -> bool {
    Features::probe(DisabledFeatures::NOTHING).unwrap().has(Feature::Fetch)
}

/// True if a program can walk through a map.
pub(super) fn has_walks() -> bool {
    Features::probe(DisabledFeatures::NOTHING).unwrap().has(Feature::ForEach)
}

#[test]
fn are_reported() {
    let features = Features::probe(DisabledFeatures::NOTHING).unwrap();
    for each in Feature::ALL {
        feature(each.name(), if features.has(each) { "yes" } else { "no" });
    }
}
