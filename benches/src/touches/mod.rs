//! Counts the cache lines and pages of maps that a packet touches, by interpreting the programs.
//!
//! The packet itself, the program's code, its constants and the scratch space of a CPU are not counted: these are the same for
//! each packet. Neither is what the kernel keeps of a map beside its values. A line that packets of two flows touch belongs to
//! all flows, and is in a cache while packets come. A line that only one of them touches belongs to its flow: with many
//! flows, it has to come from memory.

mod copied;
mod helpers;
mod instructions;
mod machine;
mod maps;
mod memory;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel};
use pping_common::{abi::Emit, hash::TableKeys, rtt::Rules};

use self::machine::Machine;
use crate::{frames, kernel, measure::run, report::Report};

/// The size of a page, as a shift.
const PAGE: u32 = 12;

/// Connections that are opened, so that what belongs to the first and to the last lies apart in memory.
const CONNECTIONS: u16 = 256;

/// Bytes of each segment.
const STEP: u32 = 1400;

/// A limit of one recording in 100 s, ns: longer than the bench takes, and short enough for the fast path.
const SELDOM: u64 = 100_000_000_000;

/// A segment of the client, or the server's acknowledgment of it.
#[derive(Clone, Copy)]
struct Packet {
    is_answer: bool,
    /// The client's clock.
    tick: u32,
    /// Segments that the client has sent before.
    sent: u32,
}

/// Opens a connection. The first tick may be older than the connection, so the second one is the first that is recorded.
const OPENING: [Packet; 6] =
    [segment(1, 0), answer(1, 1), segment(2, 1), answer(2, 2), segment(2, 2), answer(2, 3)];

/// Packets after those that are seldom recorded, and after those that all are.
const SELDOM_RECORDED: [(&str, Packet); 3] = [
    ("a segment of a tick that was seen", segment(2, 3)),
    ("a pure ACK", answer(2, 4)),
    ("a segment of a new tick, within the rate limit", segment(3, 4)),
];
const RECORDED: [(&str, Packet); 2] =
    [("a segment of a new tick, recorded", segment(3, 3)), ("its echo, a sample", answer(3, 4))];

const fn segment(tick: u32, sent: u32) -> Packet {
    Packet { is_answer: false, tick, sent }
}

const fn answer(tick: u32, sent: u32) -> Packet {
    Packet { is_answer: true, tick, sent }
}

/// The programs in the kernel, and the same interpreted.
struct Both {
    kernel: Kernel,
    machine: Machine,
    is_v6: bool,
}

/// Counts for packets that record seldom, and for packets that all record.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    println!(
        "what a packet touches in maps, of its flow and of all flows, and the instructions that it takes\n"
    );
    println!("{:<52} {:>6} {:>6} {:>6} {:>6} {:>6}", "", "lines", "pages", "of all", "pages", "instr.");
    for is_v6 in [false, true] {
        println!("{}", if is_v6 { "IPv6" } else { "IPv4" });
        // Each opening gives a sample.
        let of_openings = u32::from(CONNECTIONS);
        let samples = count(SELDOM, is_v6, &SELDOM_RECORDED, report)?;
        ensure!(samples == of_openings, "{samples} samples: the figures are of something else");
        let samples = count(0, is_v6, &RECORDED, report)?;
        ensure!(samples == of_openings + 3, "{samples} samples: the figures are of something else");
    }
    Ok(())
}

/// Counts for each packet what it touches in two connections. Returns the number of samples.
fn count(rate_limit: u64, is_v6: bool, packets: &[(&str, Packet)], report: &mut Report) -> Result<u32> {
    // Ticks are sent again later than a clock would: in the kernel all takes as long as interpreting does.
    let rules = Rules { rate_limit, still_clock: SELDOM, ..Rules::UNLIMITED };
    // The same in each run, and so are the buckets.
    let mut number = 0_u64;
    let keys = TableKeys::random(|| {
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    });
    let options = LoadOptions { rules, emit: Emit::NOTHING, table_keys: Some(keys), ..LoadOptions::DEFAULT };
    let mut kernel = load::load(&options, false)?;
    kernel::register(&mut kernel)?;
    let machine = copied::copy(&kernel)?;
    let mut both = Both { kernel, machine, is_v6 };
    for connection in 0..CONNECTIONS {
        for packet in OPENING {
            both.pass(packet, connection)?;
        }
    }
    for &(what, packet) in packets {
        // What only the first packet of this kind does is not counted.
        both.touched(packet, CONNECTIONS / 2)?;
        let one = both.touched(packet, 0)?;
        let instructions = both.machine.executed;
        let other = both.touched(packet, CONNECTIONS - 1)?;
        let pages = |lines: &BTreeSet<u64>| -> BTreeSet<u64> {
            lines.iter().map(|line| line >> (PAGE - memory::LINE)).collect()
        };
        let (pages_of_one, pages_of_other) = (pages(&one), pages(&other));
        let of_flow = &one - &other;
        let figures = [
            of_flow.len(),
            (&pages_of_one - &pages_of_other).len(),
            (&one & &other).len(),
            (&pages_of_one & &pages_of_other).len(),
        ];
        let [lines, in_pages, lines_of_all, in_pages_of_all] = figures;
        println!(
            "{:<52} {lines:>6} {in_pages:>6} {lines_of_all:>6} {in_pages_of_all:>6} {instructions:>6}",
            format!("  {what}")
        );
        println!("    of its flow: {}", both.by_map(&of_flow)?);
        let name = format!("{}, {what}", if is_v6 { "IPv6" } else { "IPv4" });
        report.take_one(format!("{name}: cache lines of its flow"), "lines", lines as f64)?;
        report.take_one(format!("{name}: pages of its flow"), "pages", in_pages as f64)?;
        report.take_one(format!("{name}: cache lines of all flows"), "lines", lines_of_all as f64)?;
        report.take_one(format!("{name}: pages of all flows"), "pages", in_pages_of_all as f64)?;
        report.take_one(format!("{name}: instructions"), "instructions", instructions as f64)?;
    }
    copied::compare(&both.machine, &both.kernel)
}

impl Both {
    /// The cache lines that a packet touches.
    fn touched(&mut self, packet: Packet, connection: u16) -> Result<BTreeSet<u64>> {
        self.machine.memory.take_touched();
        self.pass(packet, connection)?;
        Ok(self.machine.memory.take_touched())
    }

    /// The number of lines in each map.
    fn by_map(&self, lines: &BTreeSet<u64>) -> Result<String> {
        let mut counts = BTreeMap::<&str, u32>::new();
        for line in lines {
            let region = memory::region_of(line << memory::LINE);
            *counts.entry(&self.machine.memory.region(region)?.name).or_default() += 1;
        }
        Ok(counts.iter().map(|(map, count)| format!("{map} {count}")).collect::<Vec<_>>().join(", "))
    }

    /// Lets a packet of a connection pass.
    fn pass(&mut self, packet: Packet, connection: u16) -> Result<()> {
        let frame = frame(packet, connection, self.is_v6);
        let program = if packet.is_answer { "pping_egress" } else { "pping_ingress" };
        run((&self.kernel.programs, program), &frame, 1)?;
        self.machine.run(program, &frame)
    }
}

/// The frame of a packet.
fn frame(Packet { is_answer, tick, sent }: Packet, connection: u16, is_v6: bool) -> Vec<u8> {
    /// The offset of the TCP header, by IPv4 and by IPv6, and those of its fields.
    const TCP: [usize; 2] = [14 + 20, 14 + 40];
    const SEQUENCE: usize = 4;
    const ACKNOWLEDGEMENT: usize = 8;
    const TSVAL: usize = 24;
    const TSECR: usize = 28;
    let mut frame = match (is_v6, is_answer) {
        (false, false) => frames::tcp(1, 1, STEP as usize),
        (true, false) => frames::tcp_v6(1, 1, STEP as usize),
        (false, true) => frames::tcp_answer(true, 0x10),
        (true, true) => frames::tcp_answer_v6(),
    };
    let tcp = TCP[usize::from(is_v6)];
    let client_port = tcp + if is_answer { 2 } else { 0 };
    frame[client_port..][..2].copy_from_slice(&(20_000 + connection).to_be_bytes());
    let sent = 1 + sent * STEP;
    let fields = if is_answer {
        [(SEQUENCE, 1), (ACKNOWLEDGEMENT, sent), (TSVAL, 7), (TSECR, tick)]
    } else {
        [(SEQUENCE, sent), (ACKNOWLEDGEMENT, 1), (TSVAL, tick), (TSECR, 7)]
    };
    for (at, value) in fields {
        frame[tcp + at..][..4].copy_from_slice(&value.to_be_bytes());
    }
    frame
}
