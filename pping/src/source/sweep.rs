//! Having the kernel add up what flows sent, delete idle ones, and give up on DNS queries.

use aya::{
    Ebpf, Pod,
    maps::{HashMap, MapData, MapError},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use pping_common::{
    abi::{Control, Errand},
    dns::{Query, QueryKey, is_unanswered},
    flow::{Ipv4, Ipv6},
    limits::{
        CLOSED_IDLE_SECONDS, IDLE_SECONDS, LEASE_SECONDS, MAX_DUE, MAX_QUERIES, QUIC_IDLE_SECONDS,
        SWEEP_INTERVAL_SECONDS, UNANSWERED_IDLE_SECONDS,
    },
    table::{Bucket, FOLD_SWEEPS, Place, idle},
};

use super::{
    clock,
    load::{self, Kernel},
    memory::Elements,
    series::{self, SeriesTable},
};
use crate::Error;

/// A map of queries.
type Queries<'a, A> = HashMap<&'a MapData, QueryKey<A>, Query>;

/// What to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The flows that sent something or may have been idle too long, and the queries that have waited too long.
    Due,
    /// All.
    All,
}

/// What goes through the flows and the queries: a program that is told of many at a time (Linux 5.13), or one that is sent to
/// each of them. To the kernel each of its runs is a test run, and needs no packet.
pub struct Sweeper {
    pub(super) walks: bool,
    has_dns: bool,
    errand: Elements<Errand>,
    due: Elements<u64>,
    /// Where the flows are, by family.
    indices: [(u32, Elements<Bucket>); 2],
}

impl Sweeper {
    /// Takes the maps by which the program is told.
    ///
    /// # Errors
    /// When they are not to be had.
    pub(super) fn new(programs: &mut Ebpf, walks: bool, has_dns: bool, buckets: u32) -> Result<Self, Error> {
        let buckets = buckets as usize;
        Ok(Self {
            walks,
            has_dns,
            errand: Elements::of(series::array(programs, "ERRAND")?, 1)?,
            due: Elements::of(series::array(programs, "DUE")?, MAX_DUE as usize)?,
            indices: [
                (Errand::V4, Elements::of(series::array(programs, "INDEX_V4")?, buckets)?),
                (Errand::V6, Elements::of(series::array(programs, "INDEX_V6")?, buckets)?),
            ],
        })
    }

    /// The name of the program.
    pub fn program(&self) -> &'static str {
        if self.walks { "pping_sweep" } else { "pping_sweep_one" }
    }

    fn sweep(&self, programs: &Ebpf, series: &SeriesTable) -> Result<(), Error> {
        let of = if series.is_cutting_off() { Of::All } else { Of::Due };
        self.run(programs, NOTHING)?;
        // SAFETY: the mapping of one `Errand`, which the program writes to only while it is run here.
        let sweep = unsafe { (*self.errand.first()).sweep };
        for (kind, index) in &self.indices {
            self.visit(programs, *kind, index, |seen| of == Of::All || is_due(idle(sweep, seen)))?;
        }
        if !self.has_dns {
            return Ok(());
        }
        if self.walks {
            let kinds = [Errand::QUERY_V4, Errand::QUERY_V6];
            return kinds.into_iter().try_for_each(|kind| self.run(programs, Errand { kind, ..NOTHING }));
        }
        let (v4, v6) = (Errand::QUERY_V4, Errand::QUERY_V6);
        self.visit_queries(programs, "QUERIES_V4", of, |key| Errand { kind: v4, query_v4: key, ..NOTHING })?;
        self.visit_queries(programs, "QUERIES_V6", of, |key| Errand { kind: v6, query_v6: key, ..NOTHING })
    }

    /// Has the program come to the flows of a table that are due, by when they were last seen.
    fn visit(
        &self,
        programs: &Ebpf,
        kind: u32,
        index: &Elements<Bucket>,
        is_due: impl Fn(u16) -> bool,
    ) -> Result<(), Error> {
        let mut noted = 0;
        for number in 0..index.len() {
            let Some(bucket) = index.get(number) else { break };
            // SAFETY: inside the mapping. The programs write there meanwhile, word by word, and look again at what is told them.
            let bucket = unsafe { bucket.read_volatile() };
            for (way, (&tag, &seen)) in bucket.tags.iter().zip(&bucket.seen).enumerate() {
                if tag == 0 || !is_due(seen) {
                    continue;
                }
                let place = Place::new(number as u32, way).0;
                if !self.walks {
                    self.run(programs, Errand { kind, due: place, ..NOTHING })?;
                    continue;
                }
                let Some(due) = self.due.get(noted) else { break };
                // SAFETY: inside the mapping, which the program reads only while it is run here.
                unsafe { due.write_volatile(u64::from(place)) };
                noted += 1;
                if noted == self.due.len() {
                    self.run(programs, Errand { kind, due: noted as u32, ..NOTHING })?;
                    noted = 0;
                }
            }
        }
        if noted == 0 {
            return Ok(());
        }
        self.run(programs, Errand { kind, due: noted as u32, ..NOTHING })
    }

    /// Sends the program to the queries that have waited too long, or to all of them.
    fn visit_queries<A>(
        &self,
        programs: &Ebpf,
        map: &str,
        of: Of,
        errand: impl Fn(QueryKey<A>) -> Errand,
    ) -> Result<(), Error>
    where
        QueryKey<A>: Pod,
    {
        let map = programs.map(map).ok_or_else(|| MapError::InvalidName { name: map.to_owned() })?;
        let queries = Queries::<A>::try_from(map)?;
        let now = clock::monotonic()?;
        // Answers come all the time, and from a query that is gone the kernel goes on from the first: so there may be no end
        // to them.
        let found: Vec<_> = queries
            .iter()
            .take(MAX_QUERIES as usize)
            .filter_map(Result::ok)
            .filter(|(_, query)| of == Of::All || is_unanswered(query.since(), now))
            .collect();
        found.into_iter().try_for_each(|(key, _)| self.run(programs, errand(key)))
    }

    fn run(&self, programs: &Ebpf, errand: Errand) -> Result<(), Error> {
        let name = self.program();
        // SAFETY: the mapping of one `Errand`, which the program reads only while it is run here.
        unsafe { self.errand.first().write_volatile(errand) };
        load::program::<RawTracePoint>(programs, name)?
            .test_run(RawTracePointRunOptions::new())
            .map(drop)
            .map_err(|error| load::refused(&format!("a run of {name}"), error))
    }
}

/// Whether there may be something to do about a flow that has been idle for so many sweeps: what it sent is to be added up, or
/// one of the times is over after which flows are deleted. Twice, as somebody may be in the way the first time.
fn is_due(idle: u32) -> bool {
    const RETRIES: u32 = 2;
    const LIMITS: [u32; 3] = [CLOSED_IDLE_SECONDS, UNANSWERED_IDLE_SECONDS, QUIC_IDLE_SECONDS];
    let is_over = |seconds: u32| idle > seconds / SWEEP_INTERVAL_SECONDS;
    idle <= FOLD_SWEEPS
        || is_over(IDLE_SECONDS)
        || LIMITS.iter().any(|&limit| is_over(limit) && !is_over(limit + RETRIES))
}

/// Runs the sweep program for the flows and queries that are due, many at a time or one by one. Renews the lease of programs
/// that have one.
///
/// # Errors
/// When the kernel does not run it.
pub fn sweep(kernel: &mut Kernel) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, .. } = kernel;
    sweeper.sweep(programs, series)?;
    if !series.has_lapsed() {
        return Ok(());
    }
    tracing::warn!(
        "this process got no CPU for longer than the {LEASE_SECONDS} s after which its programs take it for dead: what \
         passed meanwhile was not measured, and all flows begin anew"
    );
    // What waits for its echo may have been echoed unseen.
    series.cut_off(Control::ANEW);
    sweeper.sweep(programs, series)?;
    series.cut_off(0);
    series.begin_lease();
    sweeper.sweep(programs, series)
}

const NOTHING: Errand = Errand {
    kind: Errand::BEGIN,
    due: 0,
    sweep: 0,
    reserved: 0,
    query_v4: QueryKey {
        client: Ipv4::ZERO,
        server: Ipv4::ZERO,
        client_port: 0,
        server_port: 0,
        id: 0,
        interface: 0,
    },
    query_v6: QueryKey {
        client: Ipv6::ZERO,
        server: Ipv6::ZERO,
        client_port: 0,
        server_port: 0,
        id: 0,
        interface: 0,
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_looked_at_while_it_sends_and_when_it_may_have_ended() {
        let due: Vec<_> = (0..=IDLE_SECONDS + 3).filter(|&idle| is_due(idle)).collect();
        assert_eq!(due, [0, 1, 2, 11, 12, 31, 32, 61, 62, 301, 302, 303]);
    }
}
