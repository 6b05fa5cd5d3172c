//! Blocking requests to rtnetlink. The kernel has the answers ready when it has taken the request, so a destructor can
//! use them to remove what was made.

use std::io::{self, ErrorKind};

use rtnetlink::{
    packet_core::{
        NLA_HEADER_SIZE, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
        NetlinkMessage, NlasIterator, parse_i32,
    },
    packet_route::RouteNetlinkMessage,
    sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE},
};

/// The room for an answer: the kernel puts at most 32 KiB of a list into one.
const MAX_ANSWER: usize = 1 << 16;

/// A connection to the kernel.
pub(super) struct Rtnetlink {
    socket: Socket,
    sequence: u32,
}

impl Rtnetlink {
    /// Connects.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub(super) fn connect() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request, and passes its answers to `take`. The flags must contain `NLM_F_ACK` or `NLM_F_DUMP`, so that
    /// the kernel says when it is done. Returns false if something changed while the kernel listed, so that something may
    /// be missing.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        receive(&self.socket, &mut take)
    }
}

/// Passes the answers to a request to `take`, until the kernel says that it is done. Returns false if something changed while the
/// kernel listed, so that something may be missing.
///
/// # Errors
/// The error of the kernel.
pub(super) fn receive(socket: &Socket, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    let (mut answers, mut is_complete) = (Vec::with_capacity(MAX_ANSWER), true);
    loop {
        answers.clear();
        match socket.recv(&mut answers, 0) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            received => received?,
        };
        let mut rest = answers.as_slice();
        while !rest.is_empty() {
            let answer = NetlinkBuffer::new_checked(rest)
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string()))?;
            let payload = answer.payload();
            is_complete &= answer.flags() & NLM_F_DUMP_INTR == 0;
            match answer.message_type() {
                NLMSG_DONE | NLMSG_ERROR => return outcome(payload).map(|()| is_complete),
                _ => take(payload),
            }
            rest = rest.get((answer.length() as usize).next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// Reads the outcome of a request. A negative number is an error, and all else is success. The end of a list may have
/// no number.
fn outcome(payload: &[u8]) -> io::Result<()> {
    match payload.get(..4).and_then(|code| parse_i32(code).ok()) {
        Some(code) if code < 0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

/// Returns the value of the first attribute of a kind.
pub(super) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let found = NlasIterator::new(attributes).flatten().find(|it| it.kind() == kind)?;
    let length = usize::from(found.length());
    found.into_inner().get(NLA_HEADER_SIZE..length)
}
