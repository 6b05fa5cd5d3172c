//! Packets of every shape.

mod catalogue;

use pping_common::parse::{Frame, Kind, LinkType, Untracked, Vlan};

pub(super) use self::catalogue::catalogue;
use super::{
    frames::ETHERNET_HEADER,
    rig::{Program, Rig, SETTINGS},
};

/// The shortest packet that the kernel takes for a test run.
pub(super) const SHORTEST: usize = 14;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    Stamped,
    Unstamped,
    Echo,
    Untracked(Untracked),
}

/// A packet of some shape.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) frame: Vec<u8>,
    becomes: Becomes,
}

fn becomes(octets: &[u8]) -> Becomes {
    let mut frame = Frame::EMPTY;
    match frame.parse(octets, LinkType::Ethernet, Vlan::NONE) {
        Err(reason) => Becomes::Untracked(reason),
        Ok(()) if frame.transport.kind == Kind::Echo => Becomes::Echo,
        Ok(()) if frame.transport.segment.has_timestamps => Becomes::Stamped,
        Ok(()) => Becomes::Unstamped,
    }
}

#[test]
fn the_shapes_are_what_they_are_meant_to_be() {
    for shape in catalogue() {
        assert_eq!(becomes(&shape.frame), shape.becomes, "{}", shape.name);
    }
}

#[test]
fn every_shape_passes_unchanged_and_counts_as_in_user_space() {
    let mut rig = Rig::new();
    for shape in catalogue() {
        for program in Program::ALL {
            rig.send(program, &shape.frame);
            rig.agree(&format!("{} at {program:?}", shape.name));
        }
    }
}

#[test]
fn every_shape_cut_off_anywhere_passes_unchanged_and_counts_as_in_user_space() {
    let mut rig = Rig::new();
    for shape in catalogue() {
        for len in SHORTEST..shape.frame.len() {
            for program in Program::ALL {
                rig.send(program, &shape.frame[..len]);
                rig.agree(&format!("{} at {program:?}, {len} octets of it", shape.name));
            }
        }
    }
}

#[test]
fn every_shape_without_a_link_header_passes_unchanged_and_counts_as_in_user_space() {
    let mut rig = Rig::with(SETTINGS, LinkType::Ip);
    for shape in catalogue() {
        let packet = &shape.frame[ETHERNET_HEADER..];
        for len in SHORTEST..=packet.len() {
            for program in Program::ALL {
                rig.send(program, &packet[..len]);
                rig.agree(&format!("{} at {program:?}, {len} octets of it", shape.name));
            }
        }
    }
    assert!(rig.twin.counters.entries_made.iter().all(|&made| made > 0), "{:?}", rig.twin.counters);
}
