//! Having the kernel add up what flows sent, delete idle ones, and give up on DNS queries.

use aya::{
    Ebpf, Pod,
    maps::{HashMap, MapData, MapError},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use pping_common::{
    abi::{Control, Errand},
    dns::{Query, QueryKey, is_unanswered},
    flow::{Flow, FlowKey, Ipv4, Ipv6},
    limits::{LEASE_SECONDS, MAX_QUERIES},
};

use super::{
    clock,
    load::{self, Kernel},
    memory::Elements,
    series,
};
use crate::Error;

/// A flow map. What is in it is the programs' business.
type Flows<'a, A> = HashMap<&'a MapData, FlowKey<A>, [u8; size_of::<Flow>()]>;

/// A map of queries.
type Queries<'a, A> = HashMap<&'a MapData, QueryKey<A>, Query>;

/// Which queries to look at, where the kernel cannot do that by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Those that have waited too long.
    Unanswered,
    /// All of them.
    All,
}

/// What goes through the flows and the queries: a program that walks through a map by itself (Linux 5.13), or one that is
/// sent to each of them. To the kernel each of its runs is a test run, and needs no packet.
pub struct Sweeper {
    pub(super) walks: bool,
    has_dns: bool,
    errand: Elements<Errand>,
}

impl Sweeper {
    /// Takes the map by which the program is told.
    ///
    /// # Errors
    /// When it is not to be had.
    pub(super) fn new(programs: &mut Ebpf, walks: bool, has_dns: bool) -> Result<Self, Error> {
        Ok(Self { walks, has_dns, errand: Elements::of(series::array(programs, "ERRAND")?, 1)? })
    }

    /// The name of the program.
    pub fn program(&self) -> &'static str {
        if self.walks { "pping_sweep" } else { "pping_sweep_one" }
    }

    fn sweep(&self, programs: &Ebpf, of: Of) -> Result<(), Error> {
        self.run(programs, NOTHING)?;
        if self.walks {
            let kinds = [Errand::V4, Errand::V6, Errand::QUERY_V4, Errand::QUERY_V6];
            let maps = if self.has_dns { &kinds[..] } else { &kinds[..2] };
            return maps.iter().try_for_each(|&kind| self.run(programs, Errand { kind, ..NOTHING }));
        }
        self.visit(programs, "FLOWS_V4", |v4| Errand { kind: Errand::V4, v4, ..NOTHING })?;
        self.visit(programs, "FLOWS_V6", |v6| Errand { kind: Errand::V6, v6, ..NOTHING })?;
        if self.has_dns {
            let (v4, v6) = (Errand::QUERY_V4, Errand::QUERY_V6);
            self.visit_queries(programs, "QUERIES_V4", of, |key| Errand {
                kind: v4,
                query_v4: key,
                ..NOTHING
            })?;
            self.visit_queries(programs, "QUERIES_V6", of, |key| Errand {
                kind: v6,
                query_v6: key,
                ..NOTHING
            })?;
        }
        Ok(())
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

    /// Sends the program to each flow there is.
    fn visit<A>(&self, programs: &Ebpf, map: &str, errand: impl Fn(FlowKey<A>) -> Errand) -> Result<(), Error>
    where
        FlowKey<A>: Pod,
    {
        let map = programs.map(map).ok_or_else(|| MapError::InvalidName { name: map.to_owned() })?;
        let flows = Flows::<A>::try_from(map)?;
        let mut keys = flows.keys().peekable();
        while let Some(key) = keys.next() {
            // Before this one is deleted, perhaps: from a flow that is gone the kernel goes on from the first.
            keys.peek();
            self.run(programs, errand(key?))?;
        }
        Ok(())
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

/// Runs the sweep program once for each map, or once for each flow and query where it cannot walk. Renews the lease of
/// programs that have one.
///
/// # Errors
/// When the kernel does not run it.
pub fn sweep(kernel: &mut Kernel) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, .. } = kernel;
    sweeper.sweep(programs, Of::Unanswered)?;
    if !series.has_lapsed() {
        return Ok(());
    }
    tracing::warn!(
        "this process got no CPU for longer than the {LEASE_SECONDS} s after which its programs take it for dead: what \
         passed meanwhile was not measured, and all flows begin anew"
    );
    // What waits for its echo may have been echoed unseen.
    series.cut_off(Control::ANEW);
    sweeper.sweep(programs, Of::All)?;
    series.cut_off(0);
    series.begin_lease();
    sweeper.sweep(programs, Of::Unanswered)
}

const NOTHING: Errand = Errand {
    kind: Errand::BEGIN,
    reserved: 0,
    v4: FlowKey {
        low: Ipv4::ZERO,
        high: Ipv4::ZERO,
        low_port: 0,
        high_port: 0,
        interface: 0,
        protocol: 0,
        zero: 0,
    },
    v6: FlowKey {
        low: Ipv6::ZERO,
        high: Ipv6::ZERO,
        low_port: 0,
        high_port: 0,
        interface: 0,
        protocol: 0,
        zero: 0,
    },
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
