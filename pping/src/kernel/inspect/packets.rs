//! Packets that pass at present, as packet sockets show them (packet(7)).

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::socket::{MsgFlags, recv};
use pping_common::bytes::Captured;

use crate::kernel::promiscuous::packet_socket;

/// Bytes of a packet that are read: all headers.
const SNAP_LENGTH: usize = 256;

/// How many packets are read at most. The memory of the socket has room for some hundred.
const MOST: usize = 4_096;

/// Copies of the packets that pass an interface, until the memory of the socket is full.
pub(crate) struct Packets(OwnedFd);

impl Packets {
    /// Begins to copy, which takes `CAP_NET_RAW`.
    ///
    /// # Errors
    /// If the kernel refuses, or the interface is gone.
    pub(crate) fn of(ifindex: u32) -> io::Result<Self> {
        let socket = packet_socket()?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: ifindex.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: an address of this length, which lives until the call returns.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(socket)) }
    }

    /// Takes what was copied so far.
    pub(crate) fn each(&self, mut take: impl FnMut(Captured<'_>)) {
        let mut bytes = [0; SNAP_LENGTH];
        for _ in 0..MOST {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let Ok(frame_len) = recv(self.0.as_raw_fd(), &mut bytes, flags) else { return };
            take(Captured { bytes: &bytes[..frame_len.min(SNAP_LENGTH)], frame_len });
        }
    }
}
