//! Promiscuous mode: an interface takes frames that are not addressed to it, as those of a mirror port.

use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// A packet socket that keeps interfaces in promiscuous mode (packet(7)). It receives nothing. The mode ends with it, however the
/// process ends.
#[derive(Debug)]
pub struct Promiscuous(OwnedFd);

impl Promiscuous {
    /// Opens the socket, which takes `CAP_NET_RAW`. Nothing after it does.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open() -> io::Result<Self> {
        packet_socket().map(Self)
    }

    /// Puts an interface into promiscuous mode.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn hold(&self, ifindex: u32) -> io::Result<()> {
        self.set(libc::PACKET_ADD_MEMBERSHIP, ifindex)
    }

    /// Ends that, unless others want it. An interface that is gone has no mode to end.
    pub fn release(&self, ifindex: u32) {
        self.set(libc::PACKET_DROP_MEMBERSHIP, ifindex).ok();
    }

    fn set(&self, option: libc::c_int, ifindex: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: ifindex.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the option takes this structure, which lives until the call returns.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Opens a packet socket that receives nothing, unless it is bound to a protocol.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    let receives_nothing = 0;
    // SAFETY: it takes numbers only.
    let socket =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, receives_nothing) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}
