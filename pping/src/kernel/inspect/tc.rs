//! Who is attached at tc: by TCX, and by filters on a clsact or ingress queueing discipline.

use std::io;

use futures_util::TryStreamExt as _;
use pping_common::abi::Direction;
use rtnetlink::{
    Handle,
    packet_route::tc::{TcAttribute, TcFilterBpfOption, TcMessage, TcOption},
};

use crate::kernel::{Error, bpf};

/// `BPF_PROG_QUERY` of `enum bpf_cmd` in linux/bpf.h.
const PROG_QUERY: libc::c_long = 16;

/// Programs that are asked for; the kernel takes no more at a hook (`BPF_MPROG_MAX`).
const MAX_PROGRAMS: usize = 64;

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// What it does, as in `bpf` or `u32`.
    pub(crate) kind: String,
    /// Those with a lower number come first.
    pub(crate) priority: u16,
    /// The name that a program was given there.
    pub(crate) name: Option<String>,
    /// The id of the program.
    pub(crate) id: Option<u32>,
}

/// What the kernel takes and answers: this part of `union bpf_attr`, whole, since it writes its last field (`revision`).
#[repr(C)]
#[derive(Default)]
struct ProgQuery {
    target_ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    reserved: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// The ids of the programs that are attached by TCX, in the order in which they run.
///
/// # Errors
/// What the kernel says, as without `CAP_NET_ADMIN`. One that has no TCX has no programs.
pub(crate) fn tcx(ifindex: u32, direction: Direction) -> io::Result<Vec<u32>> {
    let mut ids = [0_u32; MAX_PROGRAMS];
    let mut query = ProgQuery {
        target_ifindex: ifindex,
        attach_type: bpf::attach_type(direction),
        prog_ids: ids.as_mut_ptr() as u64,
        count: ids.len() as u32,
        ..ProgQuery::default()
    };
    // SAFETY: the query is as long as is said, and there is room for as many ids as it says.
    let result = unsafe { libc::syscall(libc::SYS_bpf, PROG_QUERY, &raw mut query, size_of::<ProgQuery>()) };
    match io::Error::last_os_error() {
        _ if result >= 0 => Ok(ids.into_iter().take(query.count as usize).collect()),
        error if error.raw_os_error() == Some(libc::EINVAL) => Ok(Vec::new()),
        error => Err(error),
    }
}

/// The filters of a direction, in the order in which they are asked.
///
/// # Errors
/// When the kernel does not say.
pub(crate) async fn filters(
    handle: &Handle,
    ifindex: u32,
    direction: Direction,
) -> Result<Vec<Filter>, Error> {
    let request = handle.traffic_filter(ifindex as i32).get();
    let request = match direction {
        Direction::Ingress => request.ingress(),
        Direction::Egress => request.egress(),
    };
    let messages: Vec<TcMessage> = request.execute().try_collect().await?;
    let mut filters: Vec<Filter> = messages.iter().filter_map(filter).collect();
    filters.dedup();
    Ok(filters)
}

/// Whether there is a queueing discipline of kind `ingress`, which takes the place of clsact and has no egress.
///
/// # Errors
/// When the kernel does not say.
pub(crate) async fn has_ingress_only(handle: &Handle, ifindex: u32) -> Result<bool, Error> {
    let disciplines = handle.qdisc().get().index(ifindex as i32).execute();
    let mut disciplines = std::pin::pin!(disciplines);
    while let Some(message) = disciplines.try_next().await? {
        // Before Linux 4.20 or so the kernel tells of all interfaces whatever it is asked.
        if message.header.index == ifindex as i32 && kind(&message) == Some("ingress") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn kind(message: &TcMessage) -> Option<&str> {
    message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.as_str()),
        _ => None,
    })
}

fn filter(message: &TcMessage) -> Option<Filter> {
    let options = message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    // The kernel tells of each priority first, and then of the filters that it has.
    let options = options.filter(|_| u32::from(message.header.handle) != 0)?;
    let mut filter = Filter {
        kind: kind(message)?.to_owned(),
        priority: (message.header.info >> 16) as u16,
        name: None,
        id: None,
    };
    for option in options {
        match option {
            TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => filter.name = Some(name.clone()),
            TcOption::Bpf(TcFilterBpfOption::ProgId(id)) => filter.id = Some(*id),
            _ => {}
        }
    }
    Some(filter)
}
