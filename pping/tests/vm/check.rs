//! `pping check` reports the features of this kernel.

use pping::kernel::features::{DisabledFeatures, Feature, Features};
use pping_lab::{Topology, run};
use serde_json::Value;

use super::{
    monitor::{ok, pping},
    net::Net,
};

#[test]
fn reports_what_the_kernel_has_and_that_pping_can_run() {
    let net = Net::new();
    let said = ok(run(&mut pping(&net.router, &format!("check --json -i {}", Topology::WAN))));
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["ok"], true, "{said}");
    let checks = report["checks"].as_array().unwrap();
    let status = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("nothing of {name}: {said}"))["status"].as_str().unwrap()
    };
    let features = Features::probe(DisabledFeatures::NOTHING).unwrap();
    for feature in Feature::ALL {
        let expected = if features.has(feature) { "ok" } else { "degraded" };
        assert_eq!(status(feature.name()), expected, "{said}");
    }
    for name in ["kernel", "capabilities", "programs", "jit", "memory", "xdp", "tc"] {
        assert_eq!(status(name), "ok", "{name}: {said}");
    }
    println!("{}", ok(run(&mut pping(&net.router, "check"))));
}
