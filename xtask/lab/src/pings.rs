//! Echo requests to many addresses from one socket.

use std::{
    net::{Ipv4Addr, UdpSocket},
    os::fd::OwnedFd,
    thread,
    time::Duration,
};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::{Namespace, Result, error::Context};

/// How long a reply may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// An Echo Request (RFC 792) without its checksum and identifier, which the kernel writes.
const REQUEST: [u8; 12] = [8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];

/// What was sent, and what came back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Echoes {
    /// Echo requests.
    pub requests: u64,
    /// Their replies.
    pub replies: u64,
}

/// Pings addresses in turn until `is_over`: `at_a_time` of them at once, and the next ones when these have replied and
/// the pause is over. All requests have the same identifier, so each address is one flow.
///
/// # Errors
/// If the kernel has no sockets for pings, or does not send.
pub fn ping_in_turn(
    client: &Namespace,
    addresses: &[Ipv4Addr],
    (at_a_time, pause): (usize, Duration),
    is_over: impl Fn() -> bool,
) -> Result<Echoes> {
    client.sysctl("net.ipv4.ping_group_range", "0 2147483647")?;
    let socket = client.enter(open)?.while_doing(|| "open a socket for pings".to_owned())?;
    let (mut echoes, mut number, mut reply) = (Echoes::default(), 0_u16, [0; 100]);
    let mut next = addresses.iter().cycle();
    while !is_over() {
        for address in next.by_ref().take(at_a_time) {
            let mut request = REQUEST;
            request[6..8].copy_from_slice(&number.to_be_bytes());
            number = number.wrapping_add(1);
            socket.send_to(&request, (*address, 0)).while_doing(|| format!("ping {address}"))?;
            echoes.requests += 1;
        }
        for _ in 0..at_a_time {
            echoes.replies += u64::from(socket.recv(&mut reply).is_ok());
        }
        thread::sleep(pause);
    }
    Ok(echoes)
}

/// Opens a socket to which the kernel gives the replies to what it sent.
fn open() -> std::io::Result<UdpSocket> {
    let socket: OwnedFd =
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}
