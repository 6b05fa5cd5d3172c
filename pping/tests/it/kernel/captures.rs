//! Captures of real traffic: the kernel programs match what a replay of the file matches.

use std::{env, fs, path::PathBuf};

use pping::{
    capture::{self, Capture},
    event::Event,
    kernel::load_options::LoadOptions,
    replay::{self, Engine},
};
use pping_common::{
    abi::{Endpoints, RttEvent},
    bytes::Captured,
    flow::{Endpoint, FlowKey},
    method::{Method, Methods},
    parse::{Decap, Family, Frame, Ipv4, Ipv6, LinkType, Scope, Vlan},
    rtt::Rules,
};

use super::rig::{Program, Rig, SETTINGS, is_exhaustive, samples};

/// The kernel takes frames of up to about a page for a test run. Headers are far shorter.
const LONGEST: usize = 3000;

/// The parts of a sample that do not depend on time: the method, the identifier and the flow.
type Pair = (u8, u32, Endpoints);

fn pair(sample: &RttEvent) -> Pair {
    (sample.method, sample.identifier, Endpoints { interface: 0, ..sample.endpoints })
}

/// All methods except `quic-spin`, which depends on times, and those differ here. The end-to-end tests cover
/// `quic-spin`.
const TIMELESS: LoadOptions = LoadOptions {
    rules: Rules { methods: Methods::ALL.without(Method::QuicSpin), ..SETTINGS.rules },
    ..SETTINGS
};

/// Returns the captures to read, and those of the folder `field` below them. Without any, the test only prints a message.
fn files() -> Vec<PathBuf> {
    let folder = env::var_os("PPING_CAPTURES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/captures")),
        PathBuf::from,
    );
    let mut files = Vec::new();
    for folder in [folder.clone(), folder.join("field")] {
        let Ok(entries) = fs::read_dir(&folder) else {
            eprintln!("no captures in {}: set PPING_CAPTURES; they are not tested here", folder.display());
            continue;
        };
        let is_capture = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pcap");
        let before = files.len();
        files.extend(entries.map(|entry| entry.unwrap().path()).filter(is_capture));
        assert!(files.len() > before, "no capture in {}", folder.display());
    }
    files.sort();
    files
}

/// Returns the frames of an Ethernet capture with their times; empty for other captures.
fn frames(file: &PathBuf) -> Vec<(u64, Vec<u8>)> {
    let mut capture = Capture::new(capture::decompress(fs::File::open(file).unwrap()).unwrap());
    let mut frames = Vec::new();
    loop {
        while let Some(packet) = capture.next_packet().unwrap() {
            if packet.link == LinkType::Ethernet {
                let bytes = packet.bytes.bytes;
                frames.push((packet.time, bytes[..bytes.len().min(LONGEST)].to_vec()));
            }
        }
        if !capture.fill().unwrap() {
            return frames;
        }
    }
}

/// Returns the matches of a replay by the capture's own times.
fn replayed(frames: &[(u64, Vec<u8>)], decap: Decap) -> Vec<Pair> {
    let LoadOptions { rules, max_flows, .. } = TIMELESS;
    let mut engine = Engine::new(replay::Settings::new(rules, max_flows, decap));
    for (time, bytes) in frames {
        engine.packet(&capture::Packet {
            time: *time,
            interface: 0,
            link: LinkType::Ethernet,
            direction: None,
            bytes: Captured { bytes, frame_len: bytes.len() },
        });
    }
    let events: Vec<Event> = engine.tracker.report.events;
    samples(&events).iter().map(pair).collect()
}

/// The endpoint of the flow that sent a frame, as far as it has any.
fn sender(bytes: &[u8], decap: Decap) -> Endpoint {
    let mut frame = Frame::EMPTY;
    let captured = Captured { bytes, frame_len: bytes.len() };
    let parsed = frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, decap, &Scope::ALL);
    match frame.family {
        _ if parsed.is_err() => Endpoint::Low,
        Family::V4 => FlowKey::<Ipv4>::new(0, &frame).1,
        Family::V6 => FlowKey::<Ipv6>::new(0, &frame).1,
    }
}

/// Sends the frames of low endpoints through the first of these programs in alternation, and those of high endpoints through the
/// second. Returns their matches, after comparing them with those of user space.
fn in_kernel(
    rig: &mut Rig,
    frames: &[(u64, Vec<u8>)],
    decap: Decap,
    programs: [&[Program]; 2],
    what: &str,
) -> Vec<Pair> {
    rig.start_over();
    let mut pairs = Vec::new();
    for (number, (_, bytes)) in frames.iter().enumerate() {
        let programs = programs[sender(bytes, decap) as usize];
        rig.send(programs[number % programs.len()], bytes);
        if number % 1000 == 999 || number + 1 == frames.len() {
            let what = format!("{what}, {programs:?}, up to packet {}", number + 1);
            pairs.extend(samples(&rig.agree(&what)).iter().map(pair));
            rig.agree_on_series(&what);
        }
    }
    pairs
}

#[test]
fn captures_match_in_the_kernel_as_in_a_replay() {
    let mut compared = 0;
    let [mut inside_of_tunnels, mut outside_of_tunnels] = [Decap::ALL, Decap::NONE]
        .map(|decap| Rig::with(LoadOptions { decap, ..TIMELESS }, LinkType::Ethernet));
    let (ins, xdp, out) =
        (&[Program::Ingress, Program::Xdp][..], &[Program::Xdp][..], &[Program::Egress][..]);
    for file in files() {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let frames = frames(&file);
        let (inside, outside) = (replayed(&frames, Decap::ALL), replayed(&frames, Decap::NONE));
        // If the capture has no tunnels, both results are equal, and one run is enough: a test run of XDP takes long.
        let off = (inside != outside).then_some((&mut outside_of_tunnels, Decap::NONE, outside));
        for (rig, decap, expected) in [(&mut inside_of_tunnels, Decap::ALL, inside)].into_iter().chain(off) {
            let all = [[ins, out], [xdp, xdp], [out, ins], [&ins[..1], out]];
            for &programs in if is_exhaustive() { &all[..] } else { &all[..1] } {
                let found = in_kernel(rig, &frames, decap, programs, &name);
                let first = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                assert_eq!(first, None, "{name}: {:?}", first.map(|at| (found[at], expected[at])));
                assert_eq!(found.len(), expected.len(), "{name}, {programs:?}");
                compared += found.len();
            }
        }
    }
    eprintln!("{compared} samples compared");
}
