//! The part of the summary about packets, recordings, flows and samples that were not measured.

use std::fmt;

use pping_common::{abi::Counters, parse::Untracked};

use crate::{reasons::UNTRACKED, records::untracked_name};

/// Writes a line for each reason why something was not measured: how much, what it is, and what to do about it.
///
/// It names each counter, without `..`: one that is added has to be reported here, or to be named as one that counts what was
/// measured.
pub(super) fn write(f: &mut fmt::Formatter<'_>, counters: &Counters) -> fmt::Result {
    let Counters {
        untracked,
        pending_full,
        no_pending,
        gave_way,
        contended,
        evicted,
        dns_queries,
        dns_unanswered,
        groups_refused,
        unaggregated,
        one_way_flows,
        // The summary reports these elsewhere.
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
        retransmissions: _,
        reordered: _,
        dns_responses: _,
        reserved: _,
    } = counters;
    for reason in Untracked::ALL {
        write_untracked(f, untracked[reason as usize], reason)?;
    }
    for (count, what, why) in [
        (
            *one_way_flows,
            "not measured: {} TCP flows (one_way)",
            ": segments of one direction only; watch or capture where the other direction passes, too",
        ),
        (
            *pending_full,
            "not recorded: {} times (slots_full)",
            ": eight timestamps of the flow direction were pending; a higher --rate-limit spaces samples evenly",
        ),
        (
            *no_pending,
            "not recorded: {} times (no_pending)",
            ": the pool had no entry left; raise --max-pending or --rate-limit",
        ),
        (
            *gave_way,
            "not recorded: {} times (gave_way)",
            ": given up for something newer after 10 s, or after a later one was answered; most was never answered",
        ),
        (
            *unaggregated,
            "not in a histogram: {} samples",
            ": there was no memory left for their group; have fewer groups",
        ),
        (
            *groups_refused,
            "in the group `other`: {} flow directions",
            ": there were too many groups; raise --max-groups, or have fewer",
        ),
        (
            *evicted,
            "evicted: {} flows without a reply",
            "; raise --max-flows, unless that was a scan or a flood",
        ),
    ] {
        if count > 0 {
            writeln!(f, "{}{why}", what.replace("{}", &count.to_string()))?;
        }
    }
    let queries: u64 = dns_queries.iter().sum();
    if *dns_unanswered > 0 {
        writeln!(f, "not answered: {dns_unanswered} of {queries} DNS queries")?;
    }
    if *contended > 0 {
        writeln!(f, "not matched: {contended} packets while another CPU had their flow locked")?;
    }
    Ok(())
}

/// Writes how many packets were not measured for a reason.
fn write_untracked(f: &mut fmt::Formatter<'_>, packets: u64, reason: Untracked) -> fmt::Result {
    if packets == 0 {
        return Ok(());
    }
    let name = untracked_name(reason);
    write!(f, "not measured: {packets} packets ({name})")?;
    if let Some(known) = UNTRACKED.iter().find(|it| it.key == name) {
        write!(f, ": {}; {}", known.what, known.advice)?;
    }
    writeln!(f)
}
