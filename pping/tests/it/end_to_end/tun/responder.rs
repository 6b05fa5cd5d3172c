//! A host behind a tun device that only answers echo requests, after a delay.

use std::{
    collections::VecDeque,
    fs::File,
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_micros(500);
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// Stops on drop.
pub(super) struct Responder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Starts a responder that answers each request `hold` after it has read the request.
    pub(super) fn start(device: File, hold: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || respond(device, hold, &stopped)));
        Self { stop, thread }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn respond(mut device: File, hold: Duration, stop: &AtomicBool) {
    let mut held: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut packet = [0; 2048];
    while !stop.load(Relaxed) {
        // The device does not block. An error means that nothing can be read, or that the device is not up yet.
        if let Ok(length) = device.read(&mut packet) {
            held.extend(reply(&packet[..length]).map(|reply| (Instant::now() + hold, reply)));
            continue;
        }
        while held.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let (_, reply) = held.pop_front().unwrap();
            device.write_all(&reply).unwrap();
        }
        thread::sleep(POLL);
    }
}

/// Returns the reply to an echo request. Swapping the addresses leaves the checksum as it is, so only the type alters
/// it.
fn reply(packet: &[u8]) -> Option<Vec<u8>> {
    let mut reply = packet.to_vec();
    let (icmp, request, answer) = match packet.first()? >> 4 {
        4 if packet[9] == 1 => {
            swap(&mut reply[12..IPV4_HEADER]);
            (usize::from(packet[0] & 0x0f) * 4, 8, 0)
        }
        6 if packet[6] == 58 => {
            swap(&mut reply[8..IPV6_HEADER]);
            (IPV6_HEADER, 128, 129)
        }
        _ => return None,
    };
    if packet[icmp] != request {
        return None;
    }
    reply[icmp] = answer;
    let checksum = u16::from_be_bytes([packet[icmp + 2], packet[icmp + 3]]);
    let checksum = updated(checksum, u16::from(request) << 8, u16::from(answer) << 8);
    reply[icmp + 2..icmp + 4].copy_from_slice(&checksum.to_be_bytes());
    Some(reply)
}

fn swap(addresses: &mut [u8]) {
    let (source, destination) = addresses.split_at_mut(addresses.len() / 2);
    source.swap_with_slice(destination);
}

/// A checksum after one word has changed (RFC 1624, section 3).
fn updated(checksum: u16, from: u16, to: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!from) + u32::from(to);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
