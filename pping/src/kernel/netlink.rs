//! What rtnetlink says about interfaces and addresses: the present ones, and that they change.
//!
//! Notices and lists have separate sockets. Where interfaces come and go quickly, the socket of notices overflows, and
//! the kernel would refuse to list on it.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::AsFd as _,
    thread,
    time::Duration,
};

use nix::sys::socket::{setsockopt, sockopt};
use rtnetlink::{
    packet_core::{NLM_F_DUMP, NetlinkBuffer, NlasIterator, parse_u32},
    packet_route::{
        RouteNetlinkMessage,
        address::AddressMessage,
        link::{LinkAttribute, LinkExtentMask, LinkMessage},
    },
    sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::oneshot,
    time::{Instant, sleep_until},
};

use super::{
    interface_names::escape,
    interfaces::Link,
    rtnetlink::{Rtnetlink, attribute},
};
use crate::{capabilities, kernel::Error};

/// The time to wait before connecting again, should the socket of notices fail.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// The longest time that changes wait, so that one list answers many of them.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The receive buffer for notices, in bytes: room for some thousand. The kernel's default holds some hundred.
const BUFFER: usize = 4 << 20;

/// The room for a datagram of notices.
const MAX_NOTICES: usize = 1 << 16;

/// The highest number of datagrams to read at a time.
const MAX_DATAGRAMS: usize = 1 << 14;

/// Attempts to list interfaces or addresses, and the pause after the first; each pause is twice the one before.
const ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(5);

// Of linux/rtnetlink.h and linux/if_link.h and linux/if_addr.h.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTMGRP_LINK: u32 = 0x1;
const RTMGRP_IPV4_IFADDR: u32 = 0x10;
const RTMGRP_IPV6_IFADDR: u32 = 0x100;
const IFINFOMSG_LEN: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
const IFADDRMSG_LEN: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// A change of interfaces or addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether interfaces came, went or were renamed.
    pub links: bool,
    /// Whether the addresses of this host changed.
    pub addresses: bool,
}

impl Change {
    /// Anything may have changed.
    const EVERYTHING: Self = Self { links: true, addresses: true };

    fn and(self, other: Self) -> Self {
        Self { links: self.links || other.links, addresses: self.addresses || other.addresses }
    }
}

/// What the kernel has listed.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    /// What it listed.
    pub found: Vec<T>,
    /// False if something changed while it listed, so that something may be missing.
    pub is_complete: bool,
}

/// The kernel's notices of changes.
pub struct Notices {
    /// `None` after it failed.
    socket: Option<AsyncFd<Socket>>,
    /// Changes that were not passed on yet.
    change: Change,
    /// When they are passed on, or when to connect again.
    due: Instant,
    /// When changes were passed on last, until the caller has followed them.
    passed_on: Option<Instant>,
    buffer: Vec<u8>,
}

impl Notices {
    /// Connects, and listens for changes from then on.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn connect() -> Result<Self, Error> {
        Ok(Self {
            socket: Some(connect()?),
            change: Change::default(),
            due: Instant::now(),
            passed_on: None,
            buffer: Vec::with_capacity(MAX_NOTICES),
        })
    }

    /// Waits for the next changes, and merges them: the caller reads the present state once for all of them. Where
    /// changes never end, following them takes at most half of the time.
    pub async fn changed(&mut self) -> Change {
        // The caller may drop this future at any await, and call again.
        if let Some(passed_on) = self.passed_on.take() {
            self.due = Instant::now() + passed_on.elapsed().min(LONGEST_WAIT);
        }
        loop {
            if self.change != Change::default() && self.socket.is_some() {
                sleep_until(self.due).await;
                self.read();
                self.passed_on = Some(Instant::now());
                return std::mem::take(&mut self.change);
            }
            let Some(socket) = &self.socket else {
                sleep_until(self.due).await;
                match connect() {
                    Ok(socket) => self.socket = Some(socket),
                    Err(error) => {
                        tracing::error!("cannot connect to rtnetlink: {error}");
                        self.due = Instant::now() + RECONNECT_INTERVAL;
                    }
                }
                // Notices may have been lost.
                self.change = Change::EVERYTHING;
                continue;
            };
            match socket.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => tracing::debug!("waiting for notices of rtnetlink: {error}"),
            }
            self.read();
        }
    }

    /// Reads the notices that have arrived.
    fn read(&mut self) {
        for _ in 0..MAX_DATAGRAMS {
            let Some(socket) = &self.socket else { return };
            self.buffer.clear();
            match socket.get_ref().recv(&mut self.buffer, libc::MSG_DONTWAIT) {
                Ok(_) => self.change = self.change.and(change(&self.buffer)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    tracing::debug!("more changes than the socket has room for: listing all interfaces");
                    self.change = Change::EVERYTHING;
                }
                Err(error) => {
                    tracing::warn!("the kernel's routing socket failed ({error}); connecting again");
                    self.socket = None;
                    self.due = Instant::now() + RECONNECT_INTERVAL;
                }
            }
        }
        // There may be more, and readiness was cleared.
        self.change = Change::EVERYTHING;
    }
}

fn connect() -> io::Result<AsyncFd<Socket>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    // More than net.core.rmem_max takes CAP_NET_ADMIN.
    if setsockopt(&socket.as_fd(), sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket.as_fd(), sockopt::RcvBuf, &BUFFER)?;
    }
    socket.bind(&SocketAddr::new(0, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR))?;
    socket.set_non_blocking(true)?;
    // SAFETY: the socket owns its descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?)
}

/// Merges the changes of a datagram. Only the kinds of messages matter, so unknown attributes and odd names do no harm.
fn change(mut datagram: &[u8]) -> Change {
    let mut merged = Change::default();
    while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
        match message.message_type() {
            RTM_NEWLINK | RTM_DELLINK => merged.links = true,
            RTM_NEWADDR | RTM_DELADDR => merged.addresses = true,
            _ => {}
        }
        datagram = datagram.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    merged
}

/// Returns all interfaces.
///
/// # Errors
/// If the kernel does not list them.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method is for one lifetime only")]
pub async fn links() -> Result<Listing<Link>, Error> {
    map_links(all_links, |answer| answer.link()).await
}

/// Returns the interfaces for which `make` returns something.
pub(super) async fn map_links<T: Send + 'static>(
    request: fn() -> RouteNetlinkMessage,
    make: fn(&LinkAnswer<'_>) -> Option<T>,
) -> Result<Listing<T>, Error> {
    list(request, move |answer| LinkAnswer::new(answer).and_then(|link| make(&link))).await
}

/// Asks for all interfaces, without their statistics: these would make the list several times as long.
pub(super) fn all_links() -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])];
    RouteNetlinkMessage::GetLink(message)
}

/// Returns the addresses of this host, IPv4 mapped into IPv6.
///
/// # Errors
/// If the kernel does not list them.
pub async fn addresses() -> Result<BTreeSet<[u8; 16]>, Error> {
    let listing = list(|| RouteNetlinkMessage::GetAddress(AddressMessage::default()), address).await?;
    Ok(listing.found.into_iter().collect())
}

/// Lists, in a thread that may wait: the kernel does not answer while an interface is being changed.
async fn list<T: Send + 'static>(
    request: fn() -> RouteNetlinkMessage,
    read: impl Fn(&[u8]) -> Option<T> + Send + 'static,
) -> Result<Listing<T>, Error> {
    let (sender, listed) = oneshot::channel();
    let run = move || {
        // Listing takes none.
        if let Err(error) = capabilities::drop_all() {
            tracing::debug!("cannot drop capabilities before listing interfaces: {error}");
        }
        sender.send(list_repeatedly(request, read)).ok();
    };
    thread::Builder::new().name("pping-list".into()).spawn(run)?;
    let listed = listed.await.unwrap_or_else(|_| Err(io::Error::other("the thread that lists has ended")));
    listed.map_err(|error| Error::Netlink(error.into()))
}

/// Lists again if the kernel has no memory for the list at present, or if something changed while it listed.
fn list_repeatedly<T>(
    request: fn() -> RouteNetlinkMessage,
    read: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Listing<T>> {
    let list_once = || {
        let mut found = Vec::new();
        let is_complete =
            Rtnetlink::connect()?.request(request(), NLM_F_DUMP, |answer| found.extend(read(answer)))?;
        Ok(Listing { found, is_complete })
    };
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match list_once() {
            Ok(Listing { is_complete: false, .. }) => {}
            Err(error) if is_temporary(&error) => {}
            listed => return listed,
        }
        thread::sleep(pause);
        pause *= 2;
    }
    list_once()
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOBUFS | libc::ENOMEM | libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

/// The kernel's answer about an interface. Reads only the needed fields: a name may be anything.
pub(super) struct LinkAnswer<'a> {
    pub(super) ifindex: u32,
    /// `IFF_*`.
    pub(super) flags: u32,
    hardware_type: u16,
    attributes: &'a [u8],
}

impl<'a> LinkAnswer<'a> {
    fn new(answer: &'a [u8]) -> Option<Self> {
        let (header, attributes) = answer.split_at_checked(IFINFOMSG_LEN)?;
        let number = |start: usize| header.get(start..start + 4).and_then(|bytes| parse_u32(bytes).ok());
        Some(Self {
            ifindex: number(4)?,
            flags: number(8)?,
            hardware_type: u16::from_ne_bytes(header.get(2..4)?.try_into().ok()?),
            attributes,
        })
    }

    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, kind: u16) -> Option<&'a [u8]> {
        attribute(self.attributes, kind)
    }

    /// Returns the interface; `None` without a name.
    pub(super) fn link(&self) -> Option<Link> {
        let properties = self.attribute(IFLA_PROP_LIST).unwrap_or_default();
        let alternatives = NlasIterator::new(properties).flatten().filter(|it| it.kind() == IFLA_ALT_IFNAME);
        Some(Link {
            name: escape(text(self.attribute(IFLA_IFNAME)?)),
            alternative_names: alternatives.map(|it| escape(text(it.value()))).collect(),
            ifindex: self.ifindex,
            hardware_type: self.hardware_type,
            mtu: self.attribute(IFLA_MTU).and_then(|mtu| parse_u32(mtu).ok()).unwrap_or(0),
        })
    }
}

/// Reads an address of this host. On a point-to-point interface `IFA_ADDRESS` is that of the other end.
fn address(answer: &[u8]) -> Option<[u8; 16]> {
    let attributes = answer.get(IFADDRMSG_LEN..)?;
    let bytes = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).to_ipv6_mapped().octets());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| Ipv6Addr::from(v6).octets())
}

/// The bytes before the zero at the end.
fn text(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up() {
        let (links, addresses) =
            (Change { links: true, addresses: false }, Change { links: false, addresses: true });
        assert_eq!(links.and(addresses), Change::EVERYTHING);
        assert_eq!(links.and(Change::default()), links);
    }

    /// A message with a header, a fixed part of this length, and attributes.
    fn message(kind: u16, fixed: usize, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![0; fixed];
        for (kind, value) in attributes {
            payload.extend((value.len() as u16 + 4).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(*value);
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        let mut message = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(payload);
        message
    }

    #[test]
    fn a_datagram_may_have_several_notices_and_nonsense() {
        let link = message(RTM_NEWLINK, IFINFOMSG_LEN, &[(IFLA_IFNAME, b"e\xff\0")]);
        let address = message(RTM_DELADDR, IFADDRMSG_LEN, &[]);
        assert_eq!(change(&link), Change { links: true, addresses: false });
        assert_eq!(change(&[link.clone(), address].concat()), Change::EVERYTHING);
        assert_eq!(change(&message(99, 4, &[])), Change::default());
        for len in 0..link.len() {
            change(&link[..len]);
        }
        assert_eq!(change(&[0; 16]), Change::default(), "a message without a length does not repeat");
    }

    #[test]
    fn a_link_has_its_names_and_its_mtu() {
        let mut names =
            message(0, 0, &[(IFLA_ALT_IFNAME, b"enp1s0\0"), (9, b"x"), (IFLA_ALT_IFNAME, b"w\xc3\0")]);
        let nested = names.split_off(16);
        let mtu = 9000_u32.to_ne_bytes();
        let attributes =
            [(IFLA_MTU, &mtu[..]), (IFLA_IFNAME, b"eth\xff0\0"), (IFLA_PROP_LIST | 1 << 15, &nested)];
        let mut answer = message(RTM_NEWLINK, IFINFOMSG_LEN, &attributes).split_off(16);
        answer[2..4].copy_from_slice(&1_u16.to_ne_bytes());
        answer[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        let link = LinkAnswer::new(&answer).and_then(|answer| answer.link()).unwrap();
        let expected = Link {
            name: "eth\\xff0".into(),
            alternative_names: vec!["enp1s0".into(), "w\\xc3".into()],
            ifindex: 7,
            hardware_type: 1,
            mtu: 9000,
        };
        assert_eq!(link, expected);
        for len in 0..answer.len() {
            LinkAnswer::new(&answer[..len]).map(|answer| answer.link());
        }
    }

    #[test]
    fn the_local_end_of_a_point_to_point_interface_is_of_this_host() {
        let local = |attributes: &[(u16, &[u8])]| address(&message(0, IFADDRMSG_LEN, attributes)[16..]);
        let mapped = |last| Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped().octets();
        assert_eq!(local(&[(IFA_ADDRESS, &[192, 0, 2, 1]), (IFA_LOCAL, &[192, 0, 2, 2])]), Some(mapped(2)));
        assert_eq!(local(&[(IFA_ADDRESS, &[192, 0, 2, 1])]), Some(mapped(1)));
        assert_eq!(local(&[(IFA_ADDRESS, &[7; 16])]), Some([7; 16]));
        assert_eq!(local(&[(IFA_ADDRESS, &[7; 5])]), None);
    }
}
