//! The runs of the sweep program.

use aya::{
    Ebpf, Pod,
    maps::{HashMap, MapData, MapError},
    programs::ProgramFd,
};
use pping_common::{
    abi::{Candidate, InterfaceRoom, SweepRequest, Threshold},
    dns::{PendingQuery, QueryKey, is_unanswered},
    field,
    limits::{
        CLOSED_IDLE_SECONDS, IDLE_SECONDS, MAX_DUE, MAX_QUERIES, QUIC_IDLE_SECONDS, SWEEP_INTERVAL_SECONDS,
        UNANSWERED_IDLE_SECONDS,
    },
    shared::Shared,
    table::{Bucket, Slot, WAYS, idle_sweeps},
};

use super::{
    renewer::LeaseRenewer,
    requests::{NOTHING, Requests, SharedRequests},
    scan::Scan,
};
use crate::kernel::{
    Error, clock,
    interface_ids::InterfaceIds,
    memory::{Array, Elements},
    object::array,
    series::SeriesTable,
};
use crate::worst::Ranking;

/// A map of queries.
type Queries<'a, A> = HashMap<&'a MapData, QueryKey<A>, PendingQuery>;

/// How many flows per address family one sweep flushes (it may exceed this by a few). The next sweep continues with the
/// rest: flushing a million active flows at once would take half of each second.
pub const MAX_FLUSHED: usize = 1 << 16;

/// Buckets that are mapped at a time: 1 MiB of them.
const BUCKETS: usize = (1 << 20) / size_of::<Bucket>();

/// The flows and queries to visit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::kernel) enum SweepScope {
    /// Flows that sent something, up to [`MAX_FLUSHED`] of them, flows that may have been idle too long, and queries
    /// that have waited too long.
    Due,
    /// Like `Due`, without the limit.
    AllDue,
    /// All flows and queries.
    All,
}

/// Returns the number of elements of the map that lists what a run visits: interfaces in the run that begins a sweep, else flows.
pub(in crate::kernel) fn due_len(room: InterfaceRoom) -> u32 {
    room.watched().max(MAX_DUE)
}

/// Runs the sweep program, for many flows and queries at a time (Linux 5.13) or once for each of them.
pub struct Sweeper {
    pub(in crate::kernel) walks: bool,
    has_dns: bool,
    requests: SharedRequests,
    /// Renews the lease of the programs, if they have one.
    renewer: Option<LeaseRenewer>,
    candidates: Elements<Candidate>,
    tables: [Table; 2],
    /// The ranking of flow directions, and how many packets each end must have sent to be ranked. `None` while nothing
    /// is ranked.
    ranking: Option<(Ranking<Candidate>, u64)>,
}

/// The flows of an address family.
struct Table {
    /// The kind of requests for them.
    kind: u32,
    /// Its buckets.
    index: Array<Bucket>,
    /// The progress of sweeps.
    scan: Scan,
}

impl Sweeper {
    /// Takes the maps through which the program gets its requests.
    ///
    /// # Errors
    /// If a map is missing or cannot be mapped.
    pub(in crate::kernel) fn new(
        programs: &mut Ebpf,
        walks: bool,
        has_dns: bool,
        buckets: u32,
        room: InterfaceRoom,
    ) -> Result<Self, Error> {
        let mut table = |kind, map| {
            let index = Array::new(array(programs, map)?, buckets as usize);
            Ok::<_, Error>(Table { kind, index, scan: Scan::default() })
        };
        Ok(Self {
            tables: [table(SweepRequest::V4, "INDEX_V4")?, table(SweepRequest::V6, "INDEX_V6")?],
            walks,
            has_dns,
            requests: SharedRequests::new(Requests::new(
                Elements::new(array(programs, "SWEEP_REQUEST")?, 1)?,
                Elements::new(array(programs, "DUE")?, due_len(room) as usize)?,
            )),
            renewer: None,
            candidates: Elements::new(array(programs, "CANDIDATES")?, 2 * MAX_DUE as usize)?,
            ranking: None,
        })
    }

    /// The name of the program.
    pub fn program(&self) -> &'static str {
        if self.walks { "pping_sweep" } else { "pping_sweep_one" }
    }

    /// Takes the program, once it is loaded.
    pub(in crate::kernel) fn set_program(&self, program: ProgramFd) {
        self.requests.lock().set_program(program);
    }

    /// Renews the lease of the programs from now on, whatever this thread waits for.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(in crate::kernel) fn keep_lease(&mut self) -> Result<(), Error> {
        self.renewer = Some(LeaseRenewer::start(self.requests.clone())?);
        Ok(())
    }

    /// Gives the lease, if the programs have one, to the interfaces that are watched by now.
    ///
    /// # Errors
    /// If the kernel does not run the program.
    pub(in crate::kernel) fn watch(&self, interfaces: &InterfaceIds) -> Result<(), Error> {
        if self.renewer.is_none() {
            return Ok(());
        }
        let mut requests = self.requests.lock();
        requests.set_watched(interfaces.entries());
        requests.renew()
    }

    /// Makes the next request begin the lease of the programs, if they have one.
    pub(in crate::kernel) fn begin_lease(&self, series: &SeriesTable) {
        let _locked = self.requests.lock();
        series.begin_lease();
    }

    /// Ends the lease of the programs, if they have one. The next request makes them stop.
    pub(in crate::kernel) fn end_lease(&self, series: &SeriesTable) {
        let _locked = self.requests.lock();
        series.end_lease();
    }

    /// Makes sweeps find the `limit` worst flow directions by each figure from now on. Both ends must have sent at least
    /// `packets`.
    pub fn rank(&mut self, limit: usize, packets: u64) {
        self.ranking = (limit > 0).then(|| (Ranking::new(limit), packets));
    }

    /// The worst flow directions of the last sweep.
    pub fn worst(&self) -> Option<&Ranking<Candidate>> {
        self.ranking.as_ref().map(|(ranking, _)| ranking)
    }

    pub(in crate::kernel) fn sweep(
        &mut self,
        programs: &Ebpf,
        series: &SeriesTable,
        interfaces: &InterfaceIds,
        scope: SweepScope,
    ) -> Result<(), Error> {
        let scope = if series.is_cutting_off() { SweepScope::All } else { scope };
        if let Some((ranking, _)) = &mut self.ranking {
            ranking.clear();
        }
        let shared = self.requests.clone();
        let mut requests = shared.lock();
        requests.set_watched(interfaces.entries());
        requests.begin()?;
        if scope != SweepScope::All && series.has_lapsed() {
            // The lease had already run out, so the program began no sweep.
            return Ok(());
        }
        let sweep = requests.sweep();
        for table in 0..self.tables.len() {
            self.tables[table].scan = self.visit(&requests, table, sweep, scope)?;
        }
        if !self.has_dns {
            return Ok(());
        }
        if self.walks {
            let kinds = [SweepRequest::QUERY_V4, SweepRequest::QUERY_V6];
            return kinds.into_iter().try_for_each(|kind| requests.run(SweepRequest { kind, ..NOTHING }));
        }
        for query_v4 in overdue(programs, "QUERIES_V4", scope)? {
            requests.run(SweepRequest { kind: SweepRequest::QUERY_V4, query_v4, ..NOTHING })?;
        }
        for query_v6 in overdue(programs, "QUERIES_V6", scope)? {
            requests.run(SweepRequest { kind: SweepRequest::QUERY_V6, query_v6, ..NOTHING })?;
        }
        Ok(())
    }

    /// Runs the sweep program for the flows of one table that are due, judged by when each was last seen. Returns the
    /// progress.
    fn visit(
        &mut self,
        requests: &Requests,
        table: usize,
        sweep: u32,
        scope: SweepScope,
    ) -> Result<Scan, Error> {
        let Table { kind, mut scan, .. } = self.tables[table];
        let buckets_in_all = self.tables[table].index.len();
        let max_idle = scan.max_idle(sweep);
        let mut flush_budget = if scope == SweepScope::Due { MAX_FLUSHED } else { usize::MAX };
        let (first, mut next, mut listed) = (scan.next, scan.next, 0);
        for start in (0..buckets_in_all).step_by(BUCKETS) {
            let buckets = self.tables[table].index.part(start..start + BUCKETS)?;
            for (number, bucket) in (start..).zip(buckets.iter()) {
                let may_flush = number >= first && flush_budget > 0 || scope != SweepScope::Due;
                if may_flush {
                    next = number + 1;
                }
                let Some((tags, seen)) = flows(bucket) else { continue };
                for (way, (tag, seen)) in tags.into_iter().zip(seen).enumerate() {
                    let idle = idle_sweeps(sweep, seen);
                    let is_fresh = may_flush && idle <= max_idle;
                    if tag == 0 || !is_fresh && !may_have_timed_out(idle) && scope != SweepScope::All {
                        continue;
                    }
                    flush_budget = flush_budget.saturating_sub(usize::from(is_fresh));
                    self.list(requests, kind, Slot::new(number as u32, way), &mut listed)?;
                }
            }
        }
        if listed > 0 {
            self.flush(requests, kind, listed as u32)?;
        }
        scan.visited(next, buckets_in_all);
        Ok(scan)
    }

    /// Adds a flow to the next run of the program, and runs it when that is full.
    fn list(&mut self, requests: &Requests, kind: u32, slot: Slot, listed: &mut usize) -> Result<(), Error> {
        if !self.walks {
            return self.flush(requests, kind, slot.0);
        }
        requests.list(*listed, slot.0);
        *listed += 1;
        if *listed == MAX_DUE as usize {
            self.flush(requests, kind, *listed as u32)?;
            *listed = 0;
        }
        Ok(())
    }

    /// Runs the program for this many flows, or for the one in this slot, and ranks the candidates that it found.
    fn flush(&mut self, requests: &Requests, kind: u32, due: u32) -> Result<(), Error> {
        let threshold =
            self.ranking.as_ref().map_or(Threshold::NONE, |(ranking, packets)| ranking.threshold(*packets));
        requests.run(SweepRequest { kind, due, threshold, ..NOTHING })?;
        let Some((ranking, _)) = &mut self.ranking else { return Ok(()) };
        for candidate in self.candidates.iter().take(requests.found() as usize) {
            ranking.add(&candidate.load());
        }
        Ok(())
    }
}

/// Returns the keys of the queries that have waited too long, or of all.
fn overdue<A>(programs: &Ebpf, map: &str, scope: SweepScope) -> Result<Vec<QueryKey<A>>, Error>
where
    QueryKey<A>: Pod,
{
    let map = programs.map(map).ok_or_else(|| MapError::InvalidName { name: map.to_owned() })?;
    let queries = Queries::<A>::try_from(map)?;
    let now = clock::monotonic()?;
    // Answers remove queries all the time. If the query under the iterator is removed, the kernel starts over from the
    // first one, so the iteration might never end.
    let queries = queries.iter().take(MAX_QUERIES as usize).filter_map(Result::ok);
    let is_due =
        |pending: &PendingQuery| scope == SweepScope::All || is_unanswered(pending.query.since(), now);
    Ok(queries.filter(|(_, pending)| is_due(pending)).map(|(key, _)| key).collect())
}

/// Returns the tags of a bucket's flows, and when each was last seen; `None` if it has no flows, as most buckets of a
/// large table. Programs may write to it meanwhile; they check again what they are asked for.
fn flows(bucket: Shared<'_, Bucket>) -> Option<([u32; WAYS], [u16; WAYS])> {
    let tags = bucket.at(field!(Bucket, tags)).load();
    (tags != [0; WAYS]).then(|| (tags, bucket.at(field!(Bucket, seen)).load()))
}

/// True if a flow that has been idle for this many sweeps may have reached a deletion timeout. Each timeout is checked
/// in two consecutive sweeps, because another CPU may hold the bucket during the first.
fn may_have_timed_out(idle: u32) -> bool {
    const RETRIES: u32 = 2;
    const LIMITS: [u32; 3] = [CLOSED_IDLE_SECONDS, UNANSWERED_IDLE_SECONDS, QUIC_IDLE_SECONDS];
    let is_over = |seconds: u32| idle > seconds / SWEEP_INTERVAL_SECONDS;
    is_over(IDLE_SECONDS) || LIMITS.iter().any(|&limit| is_over(limit) && !is_over(limit + RETRIES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_looked_at_when_it_may_have_ended() {
        let due: Vec<_> = (0..=IDLE_SECONDS + 3).filter(|&idle| may_have_timed_out(idle)).collect();
        assert_eq!(due, [11, 12, 31, 32, 61, 62, 301, 302, 303]);
    }
}
