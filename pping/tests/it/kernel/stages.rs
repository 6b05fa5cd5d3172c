//! Without the programs that measure them, packets still pass and are counted.

use aya::maps::ProgramArray;
use pping_common::{
    abi::{Counters, Stage},
    parse::{Direction, LinkType, Protocol, Untracked},
};

use super::{
    frames::{Ip, TCP, Tcp, echo, v4, v6},
    rig::{Program, Rig, SETTINGS, counters, events, samples},
};

pub(super) fn unload(rig: &mut Rig, stages: &[Stage]) {
    for name in ["TC_STAGES", "XDP_STAGES"] {
        let mut array = ProgramArray::try_from(rig.kernel.programs.map_mut(name).unwrap()).unwrap();
        for &stage in stages {
            array.clear_index(&(stage as u32)).ok();
        }
    }
}

fn packets(counters: &Counters, direction: Direction, protocol: Protocol) -> u64 {
    counters.of(direction, protocol).packets()
}

#[test]
fn packets_count_by_first_headers_without_slow_path() {
    let mut rig = Rig::with(SETTINGS, LinkType::Ethernet);
    let id = rig.twin.interface_id;
    let ping = |rig: &mut Rig| {
        for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
            rig.send(Program::Egress, &echo(a, b, 1, 1, false));
            rig.send(Program::Xdp, &echo(b, a, 1, 1, true));
        }
        rig.send(Program::Ingress, &Ip::between(v4(1), v4(2)).frame(TCP, &Tcp::stamped(1, 2).bytes()));
        rig.send(Program::Egress, &[0; 64]);
    };
    // The first packet loads the XDP programs.
    ping(&mut rig);
    rig.start_over();
    unload(&mut rig, &Stage::ALL);
    ping(&mut rig);
    let counted = counters(&rig.kernel, id);
    for (direction, others) in [(Direction::Egress, (0, 1)), (Direction::Ingress, (1, 0))] {
        let by = |protocol| packets(&counted, direction, protocol);
        assert_eq!((by(Protocol::Icmp), by(Protocol::Icmpv6)), (1, 1), "{direction:?}");
        assert_eq!((by(Protocol::Tcp), by(Protocol::NonIp)), others, "{direction:?}");
    }
    assert_eq!(counted.traffic, rig.twin.counters.traffic);
    assert_eq!(counted.untracked[Untracked::NotLoaded as usize], 6);
    assert_eq!(counted.entries_made, [0; 2]);
    assert!(events(&mut rig.kernel).is_empty());
}

#[test]
fn without_the_step_packets_belong_to_flows_and_give_no_sample() {
    let mut rig = Rig::with(SETTINGS, LinkType::Ethernet);
    let id = rig.twin.interface_id;
    unload(&mut rig, &[Stage::StepV4]);
    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        rig.send(Program::Egress, &echo(a, b, 1, 1, false));
        rig.send(Program::Ingress, &echo(b, a, 1, 1, true));
    }
    let counted = counters(&rig.kernel, id);
    assert_eq!(counted.traffic, rig.twin.counters.traffic);
    assert_eq!(counted.entries_made, [1; 2]);
    assert_eq!(counted.untracked[Untracked::NotLoaded as usize], 2, "those over IPv4");
    assert_eq!(samples(&events(&mut rig.kernel)).len(), 1, "that over IPv6");
}
