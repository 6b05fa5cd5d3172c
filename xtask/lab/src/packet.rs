//! Packet sockets (packet(7)) receive and send every frame of one interface. All the `unsafe` of the wire is in here.

use std::{
    ffi::CString,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// Destination and source MAC address, which come before any tag.
const ADDRESSES: usize = 12;
const VLAN_TAG: usize = 4;
/// The largest IP packet, its Ethernet header, and room to put a VLAN tag back.
const BUFFER: usize = 65_535 + 14 + VLAN_TAG;
/// The bytes that the kernel may queue for a wire that is not scheduled just now.
const RECEIVE_BUFFER: libc::c_int = 64 << 20;

/// One interface as an open-ended cable.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// A received frame.
#[derive(Debug)]
pub struct Received<'a> {
    /// All of it, VLAN tags included.
    pub frame: &'a [u8],
    /// False if the sender left the checksum to hardware: every receiver will discard the frame.
    pub is_complete: bool,
}

impl PacketSocket {
    /// Opens a socket on an interface in the namespace of the calling thread.
    pub fn open(interface: &str) -> io::Result<Self> {
        Self::open_for(interface, libc::ETH_P_ALL as u16)
    }

    /// Opens a socket that only sends: the kernel queues no frames for it.
    pub fn sender(interface: &str) -> io::Result<Self> {
        Self::open_for(interface, 0)
    }

    /// Sends frames past the qdisc and tc, to the driver's queue of the sending CPU. Otherwise the kernel
    /// keeps the frames of a flow in one queue.
    pub fn send_by_cpu(&self) -> io::Result<()> {
        set(&self.socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
    }

    fn open_for(interface: &str, protocol: u16) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: the name is a string that ends with a zero and lives until after the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol zero receives nothing, so that no other interface's frames come in before `bind`.
        // SAFETY: socket(2) takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        checked(socket as isize)?;
        // SAFETY: the descriptor was just opened, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // Frames that the wire itself sends must not come back in.
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        // The kernel takes VLAN tags out of received frames; this says where they were.
        set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
        bind(&socket, index, protocol)?;
        Ok(Self { socket, buffer: vec![0; BUFFER] })
    }

    /// Opens the same interface once more, so that one thread can send while another receives.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, buffer: vec![0; BUFFER] })
    }

    /// Returns the next frame, or `None` if none has arrived.
    pub fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        // The frame goes behind the room for one VLAN tag: putting the tag back then moves 12 bytes only.
        let (_, space) = self.buffer.split_at_mut(VLAN_TAG);
        let mut part = libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() };
        let mut control = [0_u64; 16];
        // SAFETY: zero is a valid value of each field of msghdr.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the message points at a buffer and a control area that outlive the call, with their lengths.
        let received = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) };
        let length = match checked(received) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let aux = auxdata(&message);
        let status = aux.map_or(0, |aux| aux.tp_status);
        let is_complete =
            status & libc::TP_STATUS_CSUMNOTREADY == 0 && message.msg_flags & libc::MSG_TRUNC == 0;
        let start = match aux {
            Some(aux) if status & libc::TP_STATUS_VLAN_VALID != 0 && length >= ADDRESSES => {
                self.buffer.copy_within(VLAN_TAG..VLAN_TAG + ADDRESSES, 0);
                let tag = &mut self.buffer[ADDRESSES..ADDRESSES + VLAN_TAG];
                tag[..2].copy_from_slice(&aux.tp_vlan_tpid.to_be_bytes());
                tag[2..].copy_from_slice(&aux.tp_vlan_tci.to_be_bytes());
                0
            }
            _ => VLAN_TAG,
        };
        Ok(Some(Received { frame: &self.buffer[start..VLAN_TAG + length], is_complete }))
    }

    /// Sends a frame as it is.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of a slice that outlives the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        checked(sent).map(drop)
    }

    /// Returns how many frames the kernel could not queue since the last call.
    pub fn take_overflow(&self) -> io::Result<u64> {
        // SAFETY: zero is a valid value of each field.
        let mut stats: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut length = size_of_val(&stats) as libc::socklen_t;
        let (fd, value) = (self.socket.as_raw_fd(), (&raw mut stats).cast());
        // SAFETY: the value is a tpacket_stats, which is what this option writes, and the length says so.
        let result = unsafe {
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &raw mut length)
        };
        checked(result as isize)?;
        Ok(stats.tp_drops.into())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bind(socket: &OwnedFd, interface: libc::c_uint, protocol: u16) -> io::Result<()> {
    // SAFETY: zero is a valid value of each field of sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as _;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as _;
    let length = size_of_val(&address) as _;
    // SAFETY: a packet socket takes a sockaddr_ll, which is what is passed with its size.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    checked(result as isize).map(drop)
}

fn set(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of_val(&value) as _;
    // SAFETY: the options used here take a C int, which is what is passed with its size.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    checked(result as isize).map(drop)
}

/// The kernel's metadata of the frame.
fn auxdata(message: &libc::msghdr) -> Option<libc::tpacket_auxdata> {
    // SAFETY: the kernel filled in the message, so its control area and length belong together.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_FIRSTHDR returns null or a header that lies within the control area.
    let found = unsafe { header.as_ref() }?;
    if (found.cmsg_level, found.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: the header is one of the control area, so its data follows it.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: a message of this type carries a tpacket_auxdata; it is copied, aligned or not.
    Some(unsafe { ptr::read_unaligned(data.cast()) })
}

/// Turns the -1 of a system call into the error it stands for.
fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Namespace,
        veth::{End, Offloads, connect},
    };
    use std::{thread, time::Duration};

    /// Returns the next frame of this length, and skips others: the hosts' kernels send frames of their own.
    fn receive(socket: &mut PacketSocket, length: usize) -> Option<Vec<u8>> {
        for _ in 0..500 {
            match socket.receive().unwrap() {
                Some(received) if received.frame.len() == length => {
                    assert!(received.is_complete);
                    return Some(received.frame.to_vec());
                }
                Some(_) => {}
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
        None
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let (one, other) = (Namespace::new("one").unwrap(), Namespace::new("other").unwrap());
        connect(End::new(&one, "eth0"), End::new(&other, "eth0"), Offloads::Off).unwrap();
        let from = one.enter(|| PacketSocket::open("eth0")).unwrap().unwrap();
        let mut to = other.enter(|| PacketSocket::open("eth0")).unwrap().unwrap();
        // Ethernet type, or tag, tag and type: none, one, and two as providers stack them.
        let untagged: &[u8] = &[0x88, 0xb5];
        let vlan = &[0x81, 0x00, 0x60, 0x07, 0x88, 0xb5];
        let stacked = &[0x88, 0xa8, 0x00, 0x02, 0x81, 0x00, 0x60, 0x07, 0x88, 0xb5];
        for (number, header) in [untagged, vlan, stacked].into_iter().enumerate() {
            let mut frame = vec![0xff; ADDRESSES];
            frame.extend_from_slice(header);
            frame.resize(1000 + number, 0xa5);
            from.send(&frame).unwrap();
            assert_eq!(receive(&mut to, frame.len()), Some(frame));
        }
        assert_eq!(to.take_overflow().unwrap(), 0);
    }

    #[test]
    fn a_socket_hears_only_arriving_frames() {
        let (one, other) = (Namespace::new("one").unwrap(), Namespace::new("other").unwrap());
        connect(End::new(&one, "eth0"), End::new(&other, "eth0"), Offloads::Off).unwrap();
        let open = || PacketSocket::open("eth0").unwrap();
        // By default the kernel passes a sent frame to all other sockets of the interface, but not to its sender.
        let (sender, mut beside) = one.enter(|| (open(), open())).unwrap();
        let mut opposite = other.enter(open).unwrap();
        // Sent several times, because an interface that has just come up may drop frames while the kernel is busy.
        let is_heard = (0..30).any(|_| {
            sender.send(&[0xff; 777]).unwrap();
            receive(&mut opposite, 777).is_some()
        });
        assert!(is_heard);
        assert_eq!(receive(&mut beside, 777), None);
    }

    #[test]
    fn an_interface_must_exist() {
        let host = Namespace::new("host").unwrap();
        let error = host.enter(|| PacketSocket::open("eth0")).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
