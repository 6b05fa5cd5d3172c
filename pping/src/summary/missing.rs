//! The part of the summary about packets, recordings, flows and samples that were not measured.

use std::fmt;

use pping_common::{
    abi::Counters,
    parse::{Protocol, Untracked},
};

use super::{
    capture::{Cause, FOLLOWS},
    count::Count,
};
use crate::{labels::untracked_name, placement::EndedFlows, reasons::UNTRACKED};

const ONE_WAY: &str =
    ": segments of one direction only; watch or capture where the other direction passes, too";
const ONE_WAY_BY_SPLIT: &str = ": follows from that: each direction of a split flow counts as a flow";
const STILL_TIMESTAMPS: &str = ": the timestamps of an end did not move before they ended, so that only its part of \
                                the handshake was measured; --tcp-method seq measures the rest";
/// The least retransmissions, and the least share of them among all segments, that have a line: an eighth.
const LEAST_RETRANSMISSIONS: u64 = 4;
const RETRANSMISSIONS_SHARE: u64 = 8;
const SLOTS_FULL: &str = ": the flow had as much pending as it has room for, eight segments of each direction or 16 echo \
                          requests; look for what is not answered: loss, or flows of which only one direction passes here, or \
                          segments out of window; if answers just take long, a higher --rate-limit spreads the samples of TCP over more time";
const GAVE_WAY: &str = ": given up after 10 s, or after something later was answered; most was never answered: look for \
                        loss, unless it is for hosts that do not answer, such as the hops of mtr";

/// Writes a line for each reason why something was not measured: how much, what it is, and what to do about it. What follows
/// from `cause` says so instead. Of a capture, `undecided` DNS queries may have had a response after the end.
///
/// It names each counter, without `..`: one that is added has to be reported here, or to be named as one that counts what was
/// measured.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    counters: &Counters,
    cause: Option<Cause>,
    undecided: Option<u64>,
) -> fmt::Result {
    let Counters {
        untracked,
        pending_full,
        no_pending,
        gave_way,
        contended,
        evicted,
        dns_queries,
        dns_unanswered,
        dns_given_up,
        groups_refused,
        unaggregated,
        one_way_flows,
        still_timestamps,
        // The summary reports these elsewhere.
        retransmissions: _,
        echo_requests: _,
        echo_replies: _,
        echo_not_awaited: _,
        to_this_host: _,
        lost: _,
        samples: _,
        timed_packets: _,
        timed_ns: _,
        // These are measured.
        traffic: _,
        opened: _,
        closed: _,
        entries_made: _,
        entries_deleted: _,
        reordered: _,
        dns_responses: _,
        reserved: _,
    } = counters;
    for reason in Untracked::ALL {
        write_untracked(f, untracked[reason as usize], reason)?;
    }
    let one_way = match (cause, EndedFlows::of(counters).warning(undecided.is_some())) {
        (Some(Cause::Split), _) => ONE_WAY_BY_SPLIT.to_owned(),
        (_, Some(warning)) => format!(": {warning}"),
        (_, None) => ONE_WAY.to_owned(),
    };
    let follows = |why| if cause.is_some() { FOLLOWS } else { why };
    for (what, count, noun, which, why) in [
        ("not measured", *one_way_flows, "TCP flow", " (one_way)", one_way.as_str()),
        ("not measured", *still_timestamps, "TCP flow", " (still_timestamps)", STILL_TIMESTAMPS),
        ("not recorded", *pending_full, "time", " (slots_full)", follows(SLOTS_FULL)),
        (
            "not recorded",
            *no_pending,
            "time",
            " (no_pending)",
            ": the pool had no entry left; raise --max-pending or --rate-limit",
        ),
        ("not recorded", *gave_way, "time", " (gave_way)", follows(GAVE_WAY)),
        (
            "not in a histogram",
            *unaggregated,
            "sample",
            "",
            ": there was no memory left for their group; have fewer groups",
        ),
        (
            "in the group `other`",
            *groups_refused,
            "flow direction",
            "",
            ": there were too many groups; raise --max-groups, or have fewer",
        ),
        (
            "evicted",
            *evicted,
            "flow",
            " that were not proved",
            ": nobody had answered, or only a SYN; raise --max-flows, unless that was a scan or a flood",
        ),
    ] {
        if count > 0 {
            writeln!(f, "{what}: {}{which}{why}", Count(count, noun))?;
        }
    }
    let queries: u64 = dns_queries.iter().sum();
    if *dns_unanswered > 0 {
        let why = follows("");
        write!(f, "not answered: {dns_unanswered} of {queries} DNS queries")?;
        if let Some(undecided) = undecided.filter(|&undecided| undecided > 0) {
            write!(f, " ({undecided} more waited for less than a second at the end)")?;
        }
        writeln!(f, "{why}")?;
    }
    if *dns_given_up > 0 {
        writeln!(
            f,
            "given up: {dns_given_up} of {queries} DNS queries: more waited for a response than there is room for, unless that \
             was a flood"
        )?;
    }
    if *contended > 0 {
        writeln!(f, "not matched: {} while another CPU had their flow locked", Count(*contended, "packet"))?;
    }
    Ok(())
}

/// Says so if more segments were retransmitted than a network that works makes necessary.
pub(super) fn write_retransmissions(f: &mut fmt::Formatter<'_>, counters: &Counters) -> fmt::Result {
    let retransmissions: u64 = counters.retransmissions.iter().sum();
    let tcp = Protocol::Tcp as usize;
    let all: u64 = counters.traffic.iter().map(|lines| lines[tcp].packets()).sum();
    if retransmissions < LEAST_RETRANSMISSIONS || retransmissions * RETRANSMISSIONS_SHARE < all {
        return Ok(());
    }
    writeln!(
        f,
        "retransmitted: {retransmissions} of {all} TCP segments: what was pending when they came gives no sample, since \
         its answer could be to either; look for loss, or for packets that come here twice, more than 1 ms apart"
    )
}

/// Writes how many packets were not measured for a reason.
fn write_untracked(f: &mut fmt::Formatter<'_>, packets: u64, reason: Untracked) -> fmt::Result {
    if packets == 0 {
        return Ok(());
    }
    let name = untracked_name(reason);
    write!(f, "not measured: {} ({name})", Count(packets, "packet"))?;
    if let Some(known) = UNTRACKED.iter().find(|it| it.key == name) {
        write!(f, ": {}; {}", known.what, known.advice)?;
    }
    writeln!(f)
}
