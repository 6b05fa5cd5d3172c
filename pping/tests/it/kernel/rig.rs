//! The programs in the kernel and their twin in user space, on the same packets.

use std::{
    collections::BTreeMap,
    env,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aya::{
    Ebpf,
    programs::{TestRun as _, TestRunOptions},
};
use pping::kernel::{
    clock::WallClock,
    drain::{Event, drain},
    features::{DisabledFeatures, Feature},
    interfaces::Link,
    load::{self, Hook},
    load_options::LoadOptions,
    loaded::Kernel,
    object,
};
use pping_common::{
    abi::{Control, Counters, EndEvent, FlowEvent, RttEvent},
    hash::TableKeys,
    parse::{Direction, LinkType},
    rtt::Rules,
    series::{SeriesCounts, SeriesKey},
};

use super::{frames::ETHERNET_HEADER, twin::Twin};

/// A test run's packets arrive on the loopback device, unless a test says otherwise.
pub(super) const LOOPBACK: u32 = 1;

/// How far the wall clock may be slewed during a test.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// A program that handles packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Xdp,
    Ingress,
    Egress,
}

impl Program {
    pub(super) const ALL: [Self; 3] = [Self::Xdp, Self::Ingress, Self::Egress];

    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Xdp | Self::Ingress => Direction::Ingress,
            Self::Egress => Direction::Egress,
        }
    }

    /// `XDP_PASS` or `TC_ACT_UNSPEC`.
    fn pass(self) -> u32 {
        match self {
            Self::Xdp => 2,
            Self::Ingress | Self::Egress => u32::MAX,
        }
    }

    /// True if the kernel may refuse a test run: at tc it requires a whole IP header behind the Ethernet header, unless
    /// the frame has a VLAN tag.
    fn is_refused(self, bytes: &[u8]) -> bool {
        let least = match bytes[12..14] {
            [0x08, 0x00] => ETHERNET_HEADER + 20,
            [0x86, 0xdd] => ETHERNET_HEADER + 40,
            _ => 0,
        };
        self != Self::Xdp && bytes.len() < least
    }

    /// The context of a packet on an interface: `xdp_md` or `__sk_buff` of linux/bpf.h.
    fn context(self, len: usize, ifindex: u32) -> Vec<u8> {
        let (size, fields) = match self {
            Self::Xdp => (24, [(4, len as u32), (12, ifindex)]),
            Self::Ingress | Self::Egress => (192, [(40, ifindex), (40, ifindex)]),
        };
        let mut context = vec![0; size];
        for (offset, value) in fields {
            context[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        context
    }
}

/// Load options without limits, with room for some thousand flows. Neither is a segment that passes again a copy, nor stands
/// a clock still: both are told by times, and those are not the same in the kernel and in user space.
pub(super) const SETTINGS: LoadOptions = LoadOptions {
    rules: Rules { copy_within: 0, still_clock: u64::MAX, ..Rules::UNLIMITED },
    max_flows: 4096,
    ..LoadOptions::DEFAULT
};

/// Returns load options for the running kernel, and with the programs for older kernels.
pub(super) fn kernels() -> [LoadOptions; 2] {
    // TCX stays on: without it a delayed test would outlive its lease.
    [
        SETTINGS,
        LoadOptions { without: DisabledFeatures::these(&[Feature::Fetch, Feature::ForEach]), ..SETTINGS },
    ]
}

/// An event without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Timeless {
    Rtt(RttEvent),
    Flow(FlowEvent),
    End(EndEvent),
}

impl From<&Event> for Timeless {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Rtt(event) => {
                Self::Rtt(RttEvent {
                    timestamp: 0,
                    rtt: 0,
                    min_rtt: 0,
                    smoothed_rtt: 0,
                    side_rtt: 0,
                    // The kernel chooses the series index by itself.
                    series: RttEvent::NO_SERIES,
                    ..event
                })
            }
            Event::Flow(event) => Self::Flow(FlowEvent { timestamp: 0, ..event }),
            Event::End(event) => Self::End(EndEvent { began: 0, ended: 0, ..event }),
        }
    }
}

pub(super) fn timeless(events: &[Event]) -> Vec<Timeless> {
    events.iter().map(Timeless::from).collect()
}

/// Returns only the RTT events.
pub(super) fn samples(events: &[Event]) -> Vec<RttEvent> {
    let sample = |event: &Event| match event {
        Event::Rtt(event) => Some(*event),
        Event::Flow(_) | Event::End(_) => None,
    };
    events.iter().filter_map(sample).collect()
}

/// Returns only the flow events.
pub(super) fn flow_events(events: &[Event]) -> Vec<FlowEvent> {
    let flow = |event: &Event| match event {
        Event::Flow(event) => Some(*event),
        Event::Rtt(_) | Event::End(_) => None,
    };
    events.iter().filter_map(flow).collect()
}

/// True if `PPING_EXHAUSTIVE` asks for every combination of settings, as `cargo xtask everything` does. Otherwise the
/// tests cover each pair of values, because the verifier takes most of their time.
pub(super) fn is_exhaustive() -> bool {
    env::var_os("PPING_EXHAUSTIVE").is_some()
}

/// Runs a program on a packet, and asserts that the packet passes unchanged. Returns `false` if the kernel does not
/// accept the packet for a test run.
pub(super) fn run(kernel: &mut Kernel, program: Program, bytes: &[u8]) -> bool {
    run_on(kernel, program, bytes, LOOPBACK)
}

/// Like [`run`], on another interface.
pub(super) fn run_on(kernel: &mut Kernel, program: Program, bytes: &[u8], ifindex: u32) -> bool {
    let mut out = vec![0xee; bytes.len() + 64];
    let context = program.context(bytes.len(), ifindex);
    let options = TestRunOptions {
        data_in: Some(bytes),
        data_out: Some(&mut out),
        ctx_in: (ifindex != LOOPBACK).then_some(&context[..]),
        ..TestRunOptions::new()
    };
    let programs = &mut kernel.programs;
    let result = match program {
        Program::Xdp => {
            load_xdp(programs);
            object::xdp(programs).unwrap().test_run(options)
        }
        Program::Ingress => object::classifier(programs, "pping_ingress").unwrap().test_run(options),
        Program::Egress => object::classifier(programs, "pping_egress").unwrap().test_run(options),
    };
    let result = match result {
        Ok(result) => result,
        Err(_) if program.is_refused(bytes) => return false,
        Err(error) => panic!("{program:?} with {bytes:02x?}: {error:?}"),
    };
    assert_eq!(result.return_value, program.pass(), "{program:?}: {bytes:02x?}");
    assert_eq!(result.data_size_out as usize, bytes.len(), "{program:?}: {bytes:02x?}");
    assert_eq!(&out[..bytes.len()], bytes, "{program:?}");
    true
}

/// Loads the programs for XDP, unless they are loaded: verifying takes longer than most tests, so this happens only when needed.
fn load_xdp(programs: &mut Ebpf) {
    if object::xdp(programs).unwrap().fd().is_err() {
        load::load_packet_programs(programs, &[Hook::Xdp]).unwrap();
    }
}

/// Drains the ring, and returns its events.
pub(super) fn events(kernel: &mut Kernel) -> Vec<Event> {
    let mut events = Vec::new();
    while !drain(&mut kernel.events, |event| events.push(event)) {}
    events
}

/// Returns the counters of an interface, summed over all CPUs.
pub(super) fn counters(kernel: &Kernel, interface_id: u16) -> Counters {
    kernel.counters.sum(interface_id)
}

/// Returns the loopback device with the given link type.
pub(super) fn loopback(link: LinkType) -> Link {
    let hardware_type = match link {
        LinkType::Ethernet => libc::ARPHRD_LOOPBACK,
        LinkType::Ip => libc::ARPHRD_PPP,
        _ => panic!("no interface begins with {link:?}"),
    };
    Link { name: "lo".to_owned(), ifindex: LOOPBACK, hardware_type, ..Link::default() }
}

/// The kernel programs and their twin.
pub(super) struct Rig {
    pub(super) kernel: Kernel,
    pub(super) twin: Twin,
    settings: LoadOptions,
    began: (Instant, SystemTime),
    /// The longest time that a run took. It bounds how far the two clocks can be apart.
    longest_run: Duration,
}

impl Rig {
    /// A rig on Ethernet, without limits.
    pub(super) fn new() -> Self {
        Self::with(SETTINGS, LinkType::Ethernet)
    }

    pub(super) fn with(settings: LoadOptions, link: LinkType) -> Self {
        // Both find rings by the same keys.
        let keys =
            settings.table_keys.unwrap_or_else(|| TableKeys::random(|| RandomState::new().hash_one(0)));
        let settings = LoadOptions { table_keys: Some(keys), ..settings };
        let mut kernel = load::load(&settings, false).unwrap();
        let interface_id = loopback(link).register(&mut kernel).unwrap();
        Self {
            kernel,
            twin: Twin::new(settings, link, interface_id),
            settings,
            began: (Instant::now(), SystemTime::now()),
            longest_run: Duration::ZERO,
        }
    }

    /// Clears flows, queries, local addresses and counts in both. This takes far less time than loading the programs
    /// again.
    pub(super) fn start_over(&mut self) {
        let Kernel { series, local_addresses, .. } = &mut self.kernel;
        series.set_cut_off(Control::PACKETS_MISSED);
        for address in local_addresses.keys().collect::<Result<Vec<_>, _>>().unwrap() {
            local_addresses.remove(&address).unwrap();
        }
        self.kernel.sweep().unwrap();
        let Kernel { series, counters, .. } = &mut self.kernel;
        series.set_cut_off(0);
        // A series has two sets of sums and bins.
        for _ in 0..2 {
            series.rotate();
            series.take(|_, _| {}).unwrap();
            series.commit().unwrap();
        }
        counters.clear(self.twin.interface_id);
        events(&mut self.kernel);
        self.twin = Twin::new(self.settings, self.twin.link, self.twin.interface_id);
    }

    /// Says in both whether each host of a flow is on another side of the interface.
    pub(super) fn set_two_arms(&mut self, has_two_arms: bool) {
        self.kernel.interface_ids.set_two_arms(|_| has_two_arms);
        self.twin.tracker.set_two_arms(has_two_arms);
    }

    /// Adds an address of this host, in both.
    pub(super) fn add_local(&mut self, address: [u8; 16]) {
        self.kernel.local_addresses.insert(address, 1, 0).unwrap();
        self.twin.tracker.add_local(address);
    }

    /// Sends a packet through both.
    pub(super) fn send(&mut self, program: Program, bytes: &[u8]) {
        let start = Instant::now();
        let before = start.duration_since(self.began.0);
        let has_run = run(&mut self.kernel, program, bytes);
        self.longest_run = self.longest_run.max(start.elapsed());
        if has_run {
            self.twin.packet(program.direction(), bytes, before.as_nanos() as u64);
        }
    }

    /// Loads a program before the first packet, which else waits for that.
    pub(super) fn load(&mut self, program: Program) {
        if program == Program::Xdp {
            load_xdp(&mut self.kernel.programs);
        }
    }

    /// Sweeps both.
    pub(super) fn sweep(&mut self) {
        self.kernel.sweep().unwrap();
        self.twin.sweep(self.began.0.elapsed().as_nanos() as u64);
    }

    /// Asserts that both counted the same.
    pub(super) fn agree_on_counters(&self, what: &str) {
        assert_eq!(counters(&self.kernel, self.twin.interface_id), self.twin.counters, "{what}");
    }

    /// Asserts that both have aggregated the same since the last call, except for times. It sweeps first, which adds
    /// the traffic of flows.
    pub(super) fn agree_on_series(&mut self, what: &str) {
        self.sweep();
        let count = |counts: &SeriesCounts| (counts.count(), counts.sent, counts.received);
        let mut kernel = BTreeMap::new();
        let take = |key: &SeriesKey, counts: &SeriesCounts| {
            let before = kernel.insert(format!("{key:?}"), count(counts));
            assert_eq!(before, None, "{what}: two of the same");
        };
        self.kernel.series.rotate();
        self.kernel.series.take(take).unwrap();
        self.kernel.series.commit().unwrap();
        let twin = &mut self.twin.tracker;
        twin.flush();
        let aggregated = twin.take_series(0, u64::MAX).into_iter();
        let twin: BTreeMap<_, _> =
            aggregated.map(|(key, counts)| (format!("{key:?}"), count(&counts))).collect();
        assert_eq!(kernel, twin, "{what}");
    }

    /// Asserts that both have counted and reported the same since the last call. Returns the events.
    pub(super) fn agree(&mut self, what: &str) -> Vec<Event> {
        self.agree_on_counters(what);
        let (kernel, twin) = (events(&mut self.kernel), std::mem::take(&mut self.twin.events));
        for (position, (kernel, twin)) in kernel.iter().zip(&twin).enumerate() {
            assert_eq!(Timeless::from(kernel), Timeless::from(twin), "{what}: event {position}");
        }
        assert_eq!(kernel.len(), twin.len(), "{what}: number of events");
        self.agree_on_times(&kernel, &twin, what);
        kernel
    }

    /// Like [`Rig::agree`], but the kernel may report in any order.
    pub(super) fn agree_in_any_order(&mut self, what: &str) -> Vec<Event> {
        self.agree_on_counters(what);
        let (kernel, twin) = (events(&mut self.kernel), std::mem::take(&mut self.twin.events));
        let sorted = |events: &[Event]| {
            let mut texts: Vec<String> = timeless(events).iter().map(|event| format!("{event:?}")).collect();
            texts.sort();
            texts
        };
        assert_eq!(sorted(&kernel), sorted(&twin), "{what}");
        kernel
    }

    fn agree_on_times(&self, kernel: &[Event], twin: &[Event], what: &str) {
        let tolerance = self.longest_run.as_nanos() as u64;
        let elapsed = self.began.0.elapsed().as_nanos() as u64;
        let (mut latest, wall_clock) = (0, WallClock::now().unwrap());
        for (kernel, twin) in samples(kernel).iter().zip(&samples(twin)) {
            assert!(kernel.rtt > 0 && kernel.rtt <= elapsed, "{what}: {kernel:?}");
            assert!(kernel.rtt.abs_diff(twin.rtt) <= tolerance, "{what}: {kernel:?} {twin:?}");
            assert!(kernel.min_rtt > 0 && kernel.min_rtt <= kernel.rtt, "{what}: {kernel:?}");
            assert!(kernel.min_rtt.abs_diff(twin.min_rtt) <= tolerance, "{what}: {kernel:?} {twin:?}");
            assert!(kernel.min_rtt <= kernel.smoothed_rtt, "{what}: {kernel:?}");
            assert!(kernel.smoothed_rtt.abs_diff(twin.smoothed_rtt) <= 2 * tolerance, "{what}: {kernel:?}");
            assert!(kernel.timestamp > latest, "{what}: {kernel:?}");
            latest = kernel.timestamp;
            let at = UNIX_EPOCH + Duration::from_nanos(wall_clock.epoch(kernel.timestamp));
            assert!(at + CLOCK_TOLERANCE > self.began.1, "{what}: {kernel:?}");
            assert!(at < SystemTime::now() + CLOCK_TOLERANCE, "{what}: {kernel:?}");
        }
    }
}
