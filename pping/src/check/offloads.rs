//! Checks offloads: the card or its driver changes packets before or after pping sees them.

use std::collections::BTreeSet;

use super::{name::Name, report::Check, shell::quoted};
use crate::{config::Ingress, kernel::inspect::ethtool};

/// The names of GRO in the kernel (`netdev_features_strings` in `net/ethtool/common.c`).
const GRO: [&str; 2] = ["rx-gro", "rx-gro-hw"];

/// The names of TCP segmentation by the card or just before it.
const SEGMENTATION: [&str; 4] =
    ["tx-generic-segmentation", "tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation"];

/// Checks the offloads that change what is measured. At a mirror port (`is_mirror`) no host needs them.
pub(super) fn offloads(interface: &str, ingress: Ingress, is_mirror: bool) -> Vec<Check> {
    match ethtool::active_features(interface) {
        Ok(active) => vec![
            lro(interface, &active),
            // XDP of the driver comes before GRO.
            gro(interface, &active, is_mirror && ingress != Ingress::Xdp),
            segmentation(&active),
            vlan(interface, &active, ingress),
        ],
        Err(error) => vec![Check::unknown(Name::Offloads, format!("ethtool: {error}"))],
    }
}

fn lro(interface: &str, active: &BTreeSet<String>) -> Check {
    if !active.contains("rx-lro") {
        return Check::ok(Name::Lro, "off");
    }
    Check::degraded(
        Name::Lro,
        "on: the card may merge segments with different timestamps, and then only one of these is seen",
        format!(
            "ethtool -K {} lro off: until then samples are missing, and some drivers refuse XDP",
            quoted(interface)
        ),
    )
}

/// GRO does not merge segments whose TCP options differ (`tcp_gro_receive` in `net/ipv4/tcp_offload.c`).
fn gro(interface: &str, active: &BTreeSet<String>, is_mirror: bool) -> Check {
    let on = active_of(&GRO, active);
    if on.is_empty() {
        return Check::ok(Name::Gro, "off");
    }
    if is_mirror {
        return Check::degraded(
            Name::Gro,
            format!("on ({on}): segments that are merged have one time, later than most of them came"),
            format!(
                "ethtool -K {} gro off lro off: until then RTTs include how long segments waited to be merged",
                quoted(interface)
            ),
        );
    }
    Check::ok(
        Name::Gro,
        format!("on ({on}): segments with the same timestamps count as one packet; no RTT is lost"),
    )
}

fn segmentation(active: &BTreeSet<String>) -> Check {
    let on = active_of(&SEGMENTATION, active);
    if on.is_empty() {
        return Check::ok(Name::Segmentation, "off");
    }
    let found = "on: packets that this host sends are counted before segmentation, and timed when TCP hands them over";
    Check::ok(Name::Segmentation, found)
}

fn vlan(interface: &str, active: &BTreeSet<String>, ingress: Ingress) -> Check {
    match (active.contains("rx-vlan-hw-parse"), ingress) {
        (false, _) => Check::ok(Name::Vlan, "tags stay in the packets"),
        (true, Ingress::Tc) => Check::ok(Name::Vlan, "the card strips outer tags; tc sees them all the same"),
        (true, _) => Check::degraded(
            Name::Vlan,
            "the card strips outer tags, and XDP does not see them",
            format!(
                "use --ingress tc, or ethtool -K {} rxvlan off: until then records lack vlan",
                quoted(interface)
            ),
        ),
    }
}

fn active_of(names: &[&str], active: &BTreeSet<String>) -> String {
    let on: Vec<&str> = names.iter().copied().filter(|name| active.contains(*name)).collect();
    on.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};

    fn features(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_offloads_that_cost_samples_are_worse_than_ok() {
        assert_eq!(lro("eth0", &features(&["rx-gro"])).status, Status::Ok);
        let check = lro("eth0", &features(&["rx-lro"]));
        assert_eq!(check.status, Status::Degraded);
        assert!(check.remedy.unwrap().starts_with("ethtool -K eth0 lro off:"));
        let gro = |is_mirror| gro("eth0", &features(&["rx-gro", "rx-gro-hw"]), is_mirror);
        assert_eq!(gro(false).status, Status::Ok);
        assert_eq!(gro(true).status, Status::Degraded);
        assert!(gro(true).remedy.unwrap().starts_with("ethtool -K eth0 gro off lro off:"));
        let tagless = features(&["rx-vlan-hw-parse"]);
        let status = |ingress| vlan("eth0", &tagless, ingress).status;
        assert_eq!((status(Ingress::Tc), status(Ingress::Xdp)), (Status::Ok, Status::Degraded));
    }
}
