//! Packets of every shape.

mod catalogue;
mod quic;
mod tunnels;

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    method::Methods,
    parse::{Decap, Frame, Kind, LinkType, Scope, Untracked, Vlan},
};

pub(super) use self::{catalogue::catalogue, tunnels::tunnels};
use super::{
    frames::ETHERNET_HEADER,
    rig::{Program, Rig, SETTINGS},
};

/// The shortest packet that the kernel takes for a test run.
pub(super) const SHORTEST: usize = 14;

/// How the programs treat a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Stamped,
    Unstamped,
    Echo,
    Dns,
    Quic,
    Untracked(Untracked),
}

/// A packet of some shape.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) frame: Vec<u8>,
    treatment: Treatment,
}

fn treatment(bytes: &[u8], decap: Decap) -> Treatment {
    let mut frame = Frame::EMPTY;
    match frame.parse(bytes, LinkType::Ethernet, Vlan::NONE, decap, &Scope::ALL) {
        Err(reason) => Treatment::Untracked(reason),
        Ok(()) if frame.transport.kind == Kind::Quic => {
            frame.transport.begins_flow(Methods::ALL).map_or_else(Treatment::Untracked, |()| Treatment::Quic)
        }
        Ok(()) if frame.transport.kind == Kind::Echo => Treatment::Echo,
        Ok(()) if frame.transport.kind == Kind::Dns => Treatment::Dns,
        Ok(()) if frame.transport.segment.has_timestamps => Treatment::Stamped,
        Ok(()) => Treatment::Unstamped,
    }
}

/// Load options with all tunnels parsed.
pub(super) const DECAP_ALL: LoadOptions = LoadOptions { decap: Decap::ALL, ..SETTINGS };

#[test]
fn the_shapes_parse_as_intended() {
    for shape in catalogue() {
        assert_eq!(treatment(&shape.frame, Decap::NONE), shape.treatment, "{}", shape.name);
        assert_eq!(treatment(&shape.frame, Decap::ALL), shape.treatment, "{}, tunnels on", shape.name);
    }
    for shape in tunnels() {
        // The first byte of some UDP tunnels may be that of a QUIC packet.
        let off = treatment(&shape.frame, Decap::NONE);
        let is_unmeasured = matches!(off, Treatment::Untracked(Untracked::Unsupported | Untracked::NoFlow));
        assert!(is_unmeasured, "{}, tunnels off: {off:?}", shape.name);
        assert_eq!(treatment(&shape.frame, Decap::ALL), shape.treatment, "{}", shape.name);
    }
}

/// Sends shapes through all programs.
fn send(mut rig: Rig, shapes: &[Shape]) {
    for shape in shapes {
        for program in Program::ALL {
            rig.send(program, &shape.frame);
            rig.agree(&format!("{} at {program:?}", shape.name));
        }
    }
}

/// Sends shapes, without the bytes before `from`, through all programs, cut off at every length.
fn send_cut_off(mut rig: Rig, shapes: &[Shape], from: usize) {
    for shape in shapes {
        let packet = &shape.frame[from..];
        for len in SHORTEST..=packet.len() {
            for program in Program::ALL {
                rig.send(program, &packet[..len]);
                rig.agree(&format!("{} at {program:?}, {len} bytes of it", shape.name));
            }
        }
    }
}

#[test]
fn every_shape_passes_unchanged_and_counts_as_in_user_space() {
    send(Rig::new(), &catalogue());
    send(Rig::with(DECAP_ALL, LinkType::Ethernet), &catalogue());
}

#[test]
fn truncated_shapes_count_as_in_user_space() {
    send_cut_off(Rig::new(), &catalogue(), 0);
}

#[test]
fn shapes_without_link_header_count_as_in_user_space() {
    send_cut_off(Rig::with(SETTINGS, LinkType::Ip), &catalogue(), ETHERNET_HEADER);
}

#[test]
fn every_tunnel_passes_unchanged_and_counts_as_in_user_space() {
    send(Rig::new(), &tunnels());
    send(Rig::with(DECAP_ALL, LinkType::Ethernet), &tunnels());
}

#[test]
fn truncated_tunnels_count_as_in_user_space() {
    send_cut_off(Rig::with(DECAP_ALL, LinkType::Ethernet), &tunnels(), 0);
    send_cut_off(Rig::with(DECAP_ALL, LinkType::Ip), &tunnels(), ETHERNET_HEADER);
}

#[test]
fn a_kind_of_tunnel_that_is_off_is_not_parsed() {
    for kind in Decap::EACH {
        let (others, only) = (Decap(Decap::ALL.0 & !kind.0), LoadOptions { decap: kind, ..SETTINGS });
        let opened = tunnels()
            .iter()
            .filter(|shape| shape.treatment == Treatment::Stamped)
            .filter(|shape| treatment(&shape.frame, kind) == Treatment::Stamped)
            .inspect(|shape| {
                let closed = treatment(&shape.frame, others);
                assert_eq!(closed, Treatment::Untracked(Untracked::Unsupported), "{}", shape.name);
            })
            .count();
        assert!(opened > 1, "{kind:?} opens {opened}");
        send(Rig::with(only, LinkType::Ethernet), &tunnels());
    }
}
