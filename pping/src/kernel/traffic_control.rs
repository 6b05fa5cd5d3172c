//! Qdiscs and filters of tc, by rtnetlink: what clsact needs, and what other programs have there.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
};

use pping_common::parse::Direction;
use rtnetlink::{
    packet_core::{
        Emitable as _, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_ECHO, NLM_F_EXCL, parse_string, parse_u32,
    },
    packet_route::{
        RouteNetlinkMessage,
        tc::{
            TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcHeader, TcMessage, TcOption,
        },
    },
};

use super::rtnetlink::{Rtnetlink, attribute};

const CLSACT: &str = "clsact";

/// `ffff:0`, the handle that ingress and clsact qdiscs always have.
const CLSACT_HANDLE: TcHandle = TcHandle { major: 0xffff, minor: 0 };

// Of linux/rtnetlink.h and linux/pkt_cls.h.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;

/// The lowest priority that the kernel chooses (`tc_new_tfilter` of `net/sched/cls_api.c`). A filter with a lower one
/// was given it explicitly, and comes first.
pub(crate) const FIRST_OF_KERNEL: u16 = 0x8000;

/// A filter of pping or of another program.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Its kind, as in `bpf` or `u32`.
    pub(crate) kind: String,
    /// The name of its BPF program; empty if it has none.
    pub(crate) name: String,
    /// The id of its program.
    pub(crate) program: Option<u32>,
    handle: TcHandle,
    /// Its priority, and the protocol.
    info: u32,
}

impl Filter {
    /// Whether it is the head of the filters of one priority, which the kernel lists before the filters themselves.
    pub(crate) fn is_head(&self) -> bool {
        u32::from(self.handle) == 0
    }

    /// Returns its priority. Filters with a lower one come first.
    pub(crate) fn priority(&self) -> u16 {
        TcHandle::from(self.info).major
    }
}

/// A connection to the kernel's traffic control.
pub(crate) struct TrafficControl(Rtnetlink);

impl TrafficControl {
    /// Connects.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub(crate) fn connect() -> io::Result<Self> {
        Rtnetlink::connect().map(Self)
    }

    /// Adds a clsact qdisc to an interface. Returns true if there was none.
    ///
    /// # Errors
    /// The error of the kernel, or an error if an ingress qdisc takes its place. The egress side of that one would
    /// be its ingress side (`ingress_tcf_block` of `net/sched/sch_ingress.c`).
    pub(super) fn add_clsact(&mut self, ifindex: u32) -> io::Result<bool> {
        let request = RouteNetlinkMessage::NewQueueDiscipline(clsact(ifindex));
        match self.0.request(request, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, |_| {}) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                return Err(io::Error::other(
                    "this kernel has no clsact (CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF)",
                ));
            }
            added => return added.map(|_| true),
        }
        if self.has_ingress_only(ifindex)? {
            return Err(io::Error::other(
                "it has an ingress qdisc, which excludes clsact, the one that sees both directions; replace \
                 it with clsact (tc qdisc show)",
            ));
        }
        Ok(false)
    }

    /// Whether there is a qdisc of kind `ingress`, which takes the place of clsact and has no egress.
    ///
    /// # Errors
    /// The error of the kernel. A missing qdisc is no error.
    pub(crate) fn has_ingress_only(&mut self, ifindex: u32) -> io::Result<bool> {
        let mut message = clsact(ifindex);
        message.attributes.clear();
        let mut kind = None;
        let request = RouteNetlinkMessage::GetQueueDiscipline(message);
        // Before Linux 5.18 the kernel answers the sender only if an echo is requested.
        let answered = self.0.request(request, NLM_F_ECHO | NLM_F_ACK, |answer| {
            kind = text(answer, TCA_KIND).or(kind.take());
        });
        match answered {
            Err(error) if is_gone(&error) => Ok(false),
            answered => answered.map(|_| kind.as_deref() == Some("ingress")),
        }
    }

    /// Removes the clsact qdisc of an interface, and all filters with it.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn remove_clsact(&mut self, ifindex: u32) -> io::Result<()> {
        self.0.request(RouteNetlinkMessage::DelQueueDiscipline(clsact(ifindex)), NLM_F_ACK, |_| {}).map(drop)
    }

    /// Adds a filter with a priority that the kernel chooses. It comes before other such filters, and after those with
    /// an explicit priority.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn add_filter(
        &mut self,
        ifindex: u32,
        direction: Direction,
        program: BorrowedFd<'_>,
        name: &str,
    ) -> io::Result<()> {
        let mut message = filters(ifindex, direction);
        // Without a priority and a handle the kernel chooses unused ones.
        message.header.info = u32::from((libc::ETH_P_ALL as u16).to_be());
        message.attributes = vec![
            TcAttribute::Kind(TcFilterBpf::KIND.to_owned()),
            TcAttribute::Options(vec![
                TcOption::Bpf(TcFilterBpfOption::ProgFd(program.as_raw_fd().cast_unsigned())),
                TcOption::Bpf(TcFilterBpfOption::ProgName(name.to_owned())),
                TcOption::Bpf(TcFilterBpfOption::Flags(TcBpfFlags::DirectAction)),
            ]),
        ];
        let request = RouteNetlinkMessage::NewTrafficFilter(message);
        self.0.request(request, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, |_| {}).map(drop)
    }

    /// Returns the filters of an interface, of all programs, in the order in which they see packets.
    ///
    /// # Errors
    /// The error of the kernel. A missing interface or qdisc is no error.
    pub(crate) fn filters(&mut self, ifindex: u32, direction: Direction) -> io::Result<Vec<Filter>> {
        let mut found = Vec::new();
        let request = RouteNetlinkMessage::GetTrafficFilter(filters(ifindex, direction));
        self.0.request(request, NLM_F_DUMP, |answer| found.extend(filter(answer)))?;
        Ok(found)
    }

    /// Removes a filter.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn remove_filter(
        &mut self,
        ifindex: u32,
        direction: Direction,
        filter: &Filter,
    ) -> io::Result<()> {
        let mut message = filters(ifindex, direction);
        message.header.info = filter.info;
        message.header.handle = filter.handle;
        message.attributes = vec![TcAttribute::Kind(TcFilterBpf::KIND.to_owned())];
        self.0.request(RouteNetlinkMessage::DelTrafficFilter(message), NLM_F_ACK, |_| {}).map(drop)
    }
}

fn clsact(ifindex: u32) -> TcMessage {
    let mut message = TcMessage::with_index(ifindex.cast_signed());
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = CLSACT_HANDLE;
    message.attributes = vec![TcAttribute::Kind(CLSACT.to_owned())];
    message
}

fn filters(ifindex: u32, direction: Direction) -> TcMessage {
    let mut message = TcMessage::with_index(ifindex.cast_signed());
    let minor = match direction {
        Direction::Ingress => TcHandle::MIN_INGRESS,
        Direction::Egress => TcHandle::MIN_EGRESS,
    };
    message.header.parent = TcHandle { major: TcHandle::CLSACT.major, minor };
    message
}

/// Reads only the needed fields of a filter, because the kernel may have kinds and fields that pping does not know.
fn filter(answer: &[u8]) -> Option<Filter> {
    let header = TcHeader::parse(answer).ok()?;
    let kind = text(answer, TCA_KIND).unwrap_or_default();
    let options = attribute(answer.get(header.buffer_len()..)?, TCA_OPTIONS);
    let option = |number| attribute(options.filter(|_| kind == TcFilterBpf::KIND)?, number);
    Some(Filter {
        name: option(TCA_BPF_NAME).and_then(|it| parse_string(it).ok()).unwrap_or_default(),
        program: option(TCA_BPF_ID).and_then(|it| parse_u32(it).ok()),
        handle: header.handle,
        info: header.info,
        kind,
    })
}

/// The text of an attribute.
fn text(answer: &[u8], kind: u16) -> Option<String> {
    let attributes = answer.get(TcHeader::default().buffer_len()..)?;
    attribute(attributes, kind).and_then(|value| parse_string(value).ok())
}

/// True if nothing is left to remove: the kernel answers so if the interface, the qdisc or the filter is gone
/// already.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENOENT | libc::EINVAL))
}
