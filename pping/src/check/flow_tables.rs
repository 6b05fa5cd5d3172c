//! Checks flow tables of nftables: packets of the flows in them take a shorter way, which may lead past pping.

use std::io;

use super::{name::Name, report::Check};
use crate::kernel::inspect::{flow_tables::FlowTable, links::Interface};

/// Says so if the flow tables of this host cannot be listed.
pub(super) fn listing(tables: &io::Result<Vec<FlowTable>>) -> Option<Check> {
    let error = tables.as_ref().err()?;
    Some(Check::unknown(Name::FlowTable, format!("nftables does not list its flow tables: {error}")))
}

/// Says which flow table takes packets of an interface, or of one below it.
///
/// A flow table takes packets after XDP and tc at ingress of its interface (`__netif_receive_skb_core` in net/core/dev.c), and sends
/// them by way of the queue and of tc at egress of the other one (`nf_flow_offload_ip_hook` in
/// `net/netfilter/nf_flow_table_ip.c`), unless the card does both.
pub(super) fn flow_table(interface: &Interface, all: &[Interface], tables: &[FlowTable]) -> Option<Check> {
    match table_of(interface, tables) {
        Some(FlowTable { name, is_offloaded: true, .. }) => {
            let found = format!(
                "packets of flows in the flow table {name} are forwarded by the card, and pass unseen"
            );
            let remedy = "remove `flags offload` from that table (nft list flowtables): until then a flow gives samples only \
                          before it is offloaded";
            return Some(Check::degraded(Name::FlowTable, found, remedy));
        }
        Some(FlowTable { name, .. }) => {
            let found =
                format!("the flow table {name} forwards without the card: XDP and tc here see its packets");
            return Some(Check::ok(Name::FlowTable, found));
        }
        None => {}
    }
    // VLAN tags are removed, and frames go to a bridge, after the table has taken its packets.
    let ifindex = Some(interface.link.ifindex);
    let is_below = |it: &&Interface| {
        interface.vlan_of == Some(it.link.ifindex) || interface.is_bridge && it.port_of == ifindex
    };
    all.iter().filter(is_below).find_map(|below| {
        let (FlowTable { name, .. }, below) = (table_of(below, tables)?, &below.link.name);
        let found =
            format!("the flow table {name} takes packets at {below}: what comes in there may not pass here");
        let remedy = format!("watch {below}: of flows in the table, pping may see one direction only here");
        Some(Check::degraded(Name::FlowTable, found, remedy))
    })
}

/// The flow table that takes packets of an interface, by preference one that is offloaded.
fn table_of<'a>(interface: &Interface, tables: &'a [FlowTable]) -> Option<&'a FlowTable> {
    tables.iter().filter(|table| table.has(&interface.link.name)).max_by_key(|table| table.is_offloaded)
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};
    use crate::kernel::interfaces::Link;

    fn interface(name: &str, ifindex: u32) -> Interface {
        Interface { link: Link { name: name.into(), ifindex, ..Link::default() }, ..Interface::default() }
    }

    #[test]
    fn packets_pass_unseen_only_where_the_card_forwards_or_above_a_table() {
        let tables = [("eth0", false), ("eth1", false), ("eth1", true), ("wan0", false)];
        let tables = tables.map(|(interface, is_offloaded)| FlowTable::of(interface, is_offloaded));
        let bridge = Interface { is_bridge: true, ..interface("br0", 9) };
        let all = [
            interface("eth0", 2),
            interface("eth1", 3),
            Interface { vlan_of: Some(2), ..interface("eth0.5", 4) },
            Interface { port_of: Some(9), ..interface("wan0", 5) },
            Interface { port_of: Some(8), ..interface("lan0", 6) },
            bridge,
        ];
        let checks: Vec<_> = all
            .iter()
            .map(|it| flow_table(it, &all, &tables).map(|check| (check.status, check.found)))
            .collect();
        let status = |number: usize| checks[number].as_ref().map(|(status, _)| *status);
        assert_eq!([0, 1, 2].map(status), [Status::Ok, Status::Degraded, Status::Degraded].map(Some));
        assert_eq!([3, 4, 5].map(status), [Some(Status::Ok), None, Some(Status::Degraded)]);
        let found = |number: usize| checks[number].as_ref().map_or("", |(_, found)| found);
        assert!(found(1).contains("by the card") && found(2).contains("at eth0"), "{checks:?}");
        assert!(found(5).contains("at wan0"), "{checks:?}");
        assert!(all.iter().all(|it| flow_table(it, &all, &[]).is_none()));
    }
}
