//! What this kernel has.

use pping::source::features::{Feature, Features};

use super::report::feature;

#[test]
fn are_told() {
    let features = Features::probe().unwrap();
    for each in Feature::ALL {
        feature(each.name(), if features.has(each) { "yes" } else { "no" });
    }
}
