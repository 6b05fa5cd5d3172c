//! Writes a capture of many connections.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};

use anyhow::Result;

use crate::frames;

/// The captured bytes of each packet: all headers, and nothing else.
const SNAP_LENGTH: usize = 66;

/// Concurrent connections.
pub(crate) const FLOWS: u32 = 4000;

/// Nanoseconds from one packet to the next.
const GAP: u64 = 1000;

/// Writes a pcap file of `packets` segments with timestamps. The order of connections is random enough to defeat the
/// processor's caches.
pub(crate) fn write(path: &Path, packets: u32) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 0x0004_0000, 1];
    file.write_all(&words.map(u32::to_le_bytes).concat())?;
    let mut sent = vec![0_u32; FLOWS as usize];
    let mut random = 1_u64;
    for number in 0..packets {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let flow = (random % u64::from(FLOWS)) as usize;
        let at = u64::from(number) * GAP;
        let frame = frames::of_connection(flow as u16, sent[flow]);
        sent[flow] += 1;
        let captured = frame.get(..SNAP_LENGTH).unwrap_or(&frame);
        let seconds = 1_700_000_000 + (at / 1_000_000_000) as u32;
        let words = [seconds, (at % 1_000_000_000) as u32, captured.len() as u32, frame.len() as u32];
        file.write_all(&words.map(u32::to_le_bytes).concat())?;
        file.write_all(captured)?;
    }
    file.flush()?;
    Ok(())
}
