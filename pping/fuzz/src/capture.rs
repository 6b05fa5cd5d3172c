//! Any bytes, through everything that reads a capture and measures its packets.

use std::io::{self, Read};

use pping::{
    capture::{self, Capture, Packet, Skipped, decompress},
    event::Event,
    replay::{Engine, Settings},
};
use pping_common::{
    abi::{PacketCounters, RttEvent},
    parse::{Decap, Direction, LinkType},
    rtt::Rules,
};

/// Bytes of an input before the capture: the size of the pieces in which it arrives, and settings.
pub const HEADER: usize = 2;

/// Possible sizes of a piece in bytes. The first delivers everything at once.
const PIECES: [usize; 8] = [usize::MAX, 1, 2, 5, 16, 17, 100, 1000];

/// How many bytes of an unpacked capture are read. A compressed capture can unpack to a thousand times its length, and
/// would take a thousand times as long to measure.
const UNPACKED: u64 = 1 << 20;

/// The length in bytes of a packet's shortest record: its header in a pcap file, or a simple packet block in a pcapng
/// file.
const RECORD: u64 = 16;

/// zstd's error for a frame that refers back further than the reader allows.
const WINDOW_TOO_LARGE: &str = "Frame requires too much memory";

/// Reads a capture, and measures its packets.
///
/// # Panics
/// If the capture has more packets than its length allows, if the size of the pieces makes a difference, if packets are
/// miscounted, if the table exceeds its limit, or if a sample is longer than the capture.
pub fn check(input: &[u8]) {
    let Some((&[pieces, settings], bytes)) = input.split_first_chunk::<HEADER>() else { return };
    let settings = Settings::new(
        Rules::UNLIMITED,
        if settings & 1 == 0 { 1_000 } else { 2 },
        if settings & 2 == 0 { Decap::NONE } else { Decap::ALL },
    );
    let whole = Measurement::of(bytes, usize::MAX, settings.clone());
    let size = PIECES[usize::from(pieces) % PIECES.len()];
    // How much an unpacker returns of damaged data before it notices depends on the size of its input.
    if size == usize::MAX || is_compressed(bytes) && whole.error.is_some() {
        return;
    }
    let pieces = Measurement::of(bytes, size, settings);
    // A whole zstd frame that fits into the output buffer needs no window. In pieces it does.
    if is_compressed(bytes) && pieces.error.as_ref().is_some_and(|error| error.contains(WINDOW_TOO_LARGE)) {
        return;
    }
    assert_eq!(pieces, whole, "in pieces of {size}");
}

/// Decides by the first bytes, so that a file taken for compressed by error is still held to the rules for
/// uncompressed ones.
fn is_compressed(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The parts of a packet that are compared.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    time: u64,
    interface: u16,
    link: LinkType,
    direction: Option<Direction>,
    bytes: Vec<u8>,
    frame_len: usize,
}

/// Everything that reading a capture yields.
#[derive(Debug, Default, PartialEq, Eq)]
struct Measurement {
    packets: Vec<Seen>,
    skipped: Skipped,
    samples: Vec<RttEvent>,
    error: Option<String>,
}

impl Measurement {
    fn of(bytes: &[u8], size: usize, settings: Settings) -> Self {
        let mut measurement = Self::default();
        measurement.error = measurement.read(bytes, size, settings).err().map(|error| error.to_string());
        measurement
    }

    fn read(&mut self, bytes: &[u8], size: usize, settings: Settings) -> Result<(), capture::Error> {
        let mut capture = Capture::new(decompress(Pieces { bytes, size })?.take(UNPACKED));
        let max_flows = settings.max_flows;
        let mut engine = Engine::new(settings);
        let result = self.measure(&mut capture, &mut engine, max_flows);
        self.skipped = capture.skipped();
        assert_eq!(capture.packets(), self.packets.len() as u64 + self.skipped.total());
        let room = if is_compressed(bytes) { UNPACKED } else { bytes.len() as u64 };
        assert!(capture.packets() <= room / RECORD);
        let counted: u64 =
            engine.tracker.report.counters.traffic.as_flattened().iter().map(PacketCounters::packets).sum();
        assert_eq!(counted, self.packets.len() as u64);
        result
    }

    fn measure(
        &mut self,
        capture: &mut Capture<impl Read>,
        engine: &mut Engine,
        max_flows: u32,
    ) -> Result<(), capture::Error> {
        loop {
            while let Some(packet) = capture.next_packet()? {
                self.packets.push(Seen::of(&packet));
                engine.packet(&packet);
                // The limit applies to each address family.
                assert!(engine.tracker.flows() <= 2 * max_flows as usize);
                let span = engine.span();
                for event in engine.tracker.report.events.drain(..) {
                    let Event::Rtt(sample) = event else { continue };
                    assert!(sample.rtt <= span, "{sample:?} in a capture of {span} ns");
                    assert!(sample.min_rtt <= sample.rtt, "{sample:?}");
                    self.samples.push(sample);
                }
            }
            if !capture.fill()? {
                return Ok(());
            }
        }
    }
}

impl Seen {
    fn of(packet: &Packet<'_>) -> Self {
        assert!(packet.bytes.bytes.len() <= packet.bytes.frame_len);
        Self {
            time: packet.time,
            interface: packet.interface,
            link: packet.link,
            direction: packet.direction,
            bytes: packet.bytes.bytes.to_vec(),
            frame_len: packet.bytes.frame_len,
        }
    }
}

/// Bytes that arrive in pieces.
struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.size);
        self.bytes.read(&mut buffer[..len])
    }
}
