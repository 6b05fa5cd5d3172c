//! Makes records: of events at once, of flows at their end, of series at the end of each interval.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use foldhash::fast::RandomState;
use pping_common::{limits::SECOND, method::Method, series::SeriesCounts};

use super::{
    aggregate::AggregateRecord,
    flow::{FlowRecord, FlowSummaryRecord},
    hdr_log::{HdrLog, Pace},
    ranks::Worst,
    record::Record,
    residence::ResidenceInterval,
    rtt::RttRecord,
};
use crate::{
    aggregate::{Distribution, FlowSamples, Totals},
    config::Aggregation,
    event::Event,
    groups::{Networks, QueueName, SeriesName},
    membership::Membership,
    output::Error,
    quality::{self, Profiles, ScoreInput, Scores},
    residence::InterfaceTimes,
    worst::{Hosts, WorstFlow},
};

/// The interval of `--hdr-log` without `--aggregate`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Makes records from events and from the counts of series. All times are ns since the Unix epoch.
///
/// Intervals end at multiples of their length since the epoch, so that those of several machines and runs agree. Only the
/// first and the last may be shorter.
pub struct Reporter {
    /// The length of an interval, ns; 0 without intervals.
    interval: u64,
    /// Whether an interval ends with aggregate records, and not only in the log.
    reports_aggregates: bool,
    /// Whether samples and flow events are reported one by one.
    reports_individual: bool,
    /// Whether counts come once a second, and not once an interval.
    is_live: bool,
    /// The profiles that score series.
    profiles: Profiles,
    /// The networks at the other end.
    networks: Networks,
    /// The samples of each flow, if flow summaries are reported.
    flows: Option<FlowSamples>,
    log: Option<HdrLog>,
    /// The worst of the present interval, if they are reported.
    worst: Option<Worst>,
    /// The start of the present interval.
    began: u64,
    /// The series with traffic in the present interval, and the hosts that replied.
    series: HashMap<SeriesName, (Distribution, Hosts), RandomState>,
    totals: Totals,
    /// The times of packets in this host in the present interval.
    residence: ResidenceInterval,
}

impl Reporter {
    /// Starts the first interval at `start`, for a capture. At most `max_flows` flows of each address family can get a summary
    /// at a time.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub fn new(aggregation: &Aggregation, max_flows: u32, start: u64) -> Result<Self, Error> {
        Self::start(aggregation, max_flows, start, Pace::Capture(Arc::default()))
    }

    /// Like [`Reporter::new`], for a capture that waits for the log until `stop` is set.
    ///
    /// # Errors
    /// Like [`Reporter::new`].
    pub(crate) fn replay(
        aggregation: &Aggregation,
        max_flows: u32,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        Self::start(aggregation, max_flows, 0, Pace::Capture(stop))
    }

    /// Like [`Reporter::new`], for live interfaces: the caller calls [`Reporter::take`] at least once a second, and nothing waits
    /// for the log.
    ///
    /// # Errors
    /// Like [`Reporter::new`].
    #[cfg_attr(not(any(feature = "live", test)), expect(dead_code, reason = "a capture can be read again"))]
    pub(crate) fn live(aggregation: &Aggregation, max_flows: u32, start: u64) -> Result<Self, Error> {
        Ok(Self { is_live: true, ..Self::start(aggregation, max_flows, start, Pace::Live)? })
    }

    fn start(aggregation: &Aggregation, max_flows: u32, start: u64, pace: Pace) -> Result<Self, Error> {
        let log = aggregation.hdr_log.as_deref().map(|path| HdrLog::open(path, pace)).transpose()?;
        let interval = aggregation.interval.or(log.as_ref().map(|_| LOG_INTERVAL));
        Ok(Self {
            interval: interval.map_or(0, |interval| interval.as_nanos() as u64),
            reports_aggregates: aggregation.interval.is_some(),
            reports_individual: aggregation.reports_individual(),
            is_live: false,
            profiles: Profiles::default(),
            networks: Networks::default(),
            flows: aggregation.flow_summary.then(|| FlowSamples::with_room_for(2 * max_flows as usize)),
            log,
            worst: aggregation.worst.map(|limit| Worst::new(limit, aggregation.worst_min_samples)),
            began: start,
            series: HashMap::default(),
            totals: Totals::default(),
            residence: ResidenceInterval::default(),
        })
    }

    /// Scores series by these profiles from now on.
    pub fn score_by(&mut self, profiles: Profiles) {
        self.profiles = profiles;
    }

    /// Takes the names of networks at the other end from here.
    pub fn name_networks(&mut self, networks: Networks) {
        self.networks = networks;
    }

    /// Adds the counts of a series of a group, of a node of the tree of groups, or of a network, since the last call.
    pub fn take(&mut self, name: &SeriesName, counts: &SeriesCounts) {
        if counts.is_empty() {
            return;
        }
        // The samples of nodes and networks are those of the groups.
        if name.group.level.is_none() {
            self.totals.add(name.interface.as_ref(), name.method, name.matched, name.side, counts);
        }
        if self.interval == 0 {
            return;
        }
        let (distribution, hosts) = match self.series.get_mut(name) {
            Some(known) => known,
            None => self.series.entry(name.clone()).or_default(),
        };
        distribution.add(counts);
        // Only the ranking of the worst needs the hosts.
        if self.worst.is_some() {
            hosts.add(counts);
        }
    }

    /// Adds the worst flows of a part of the interval.
    pub fn rank(&mut self, flows: &[WorstFlow]) {
        if let Some(worst) = &mut self.worst {
            worst.add(flows);
        }
    }

    /// Takes the present totals of the times that packets spent in this host, if aggregates are reported.
    #[cfg_attr(
        not(feature = "live"),
        expect(dead_code, reason = "packets of a capture are not in this host")
    )]
    pub(crate) fn take_residence(&mut self, times: Vec<InterfaceTimes>) {
        if self.reports_aggregates {
            self.residence.take(times);
        }
    }

    /// Adds the times that packets of a group spent in a queue since the last call, if aggregates are reported.
    #[cfg_attr(
        not(any(feature = "live", test)),
        expect(dead_code, reason = "packets of a capture are not in this host")
    )]
    pub(crate) fn take_queue(&mut self, name: &QueueName, counts: &SeriesCounts) {
        if self.reports_aggregates {
            self.residence.take_queue(name, counts);
        }
    }

    /// The record of an event, if it has one. `interface` and `group` are the names of its interface and group; `epoch`
    /// converts a time of the event to ns since the Unix epoch.
    pub fn event(
        &mut self,
        event: &Event,
        interface: Option<Arc<str>>,
        of: Membership,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Record> {
        let mut record = self.record(event, interface, of, epoch)?;
        record.name_networks(&self.networks);
        Some(record)
    }

    /// The same, without the names of networks.
    fn record(
        &mut self,
        event: &Event,
        interface: Option<Arc<str>>,
        of: Membership,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Record> {
        match (event, &mut self.flows) {
            (Event::Rtt(sample), Some(flows)) => flows.sample(sample, of.side),
            (Event::End(end), Some(flows)) => {
                let rtts = flows.end(&end.endpoints);
                let record = FlowSummaryRecord::new(end, interface, rtts, epoch)?;
                return Some(Record::FlowSummary(Box::new(record)));
            }
            _ => {}
        }
        if !self.reports_individual {
            return None;
        }
        match event {
            Event::Rtt(event) => {
                RttRecord::new(event, interface, of, epoch(event.timestamp)).map(Record::Rtt)
            }
            Event::Flow(event) => FlowRecord::new(event, interface, epoch(event.timestamp)).map(Record::Flow),
            Event::End(_) => None,
        }
    }

    /// The end of the present interval, if there are intervals.
    pub fn interval_end(&self) -> Option<u64> {
        (self.began / self.interval.max(1))
            .checked_add(1)?
            .checked_mul(self.interval)
            .filter(|_| self.interval > 0)
    }

    /// Whether the present interval is over. Call [`Reporter::take`] before [`Reporter::tick`].
    pub fn is_due(&self, now: u64) -> bool {
        self.interval_end().is_some_and(|next| now >= next)
    }

    /// Ends the present interval if it is over, and returns its records. Several intervals that passed at once become one.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn tick(&mut self, now: u64) -> Result<Vec<Record>, Error> {
        if self.is_due(now) { self.end(now - now % self.interval) } else { Ok(Vec::new()) }
    }

    /// Ends the present interval at `now`, and returns its records.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn finish(&mut self, now: u64) -> Result<Vec<Record>, Error> {
        self.end(now.max(self.began.saturating_add(1)))
    }

    /// Starts an interval at `now` after [`Reporter::finish`]. `now` may be earlier than the end of the last interval.
    pub fn restart(&mut self, now: u64) {
        self.began = now;
        if let Some(log) = &mut self.log {
            log.restart();
        }
    }

    /// Reopens the log, as after a rotation.
    pub fn reopen(&mut self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
    }

    /// Waits until the log is written: for live interfaces half a second at most. Returns how many of its lines were lost in all.
    ///
    /// # Errors
    /// If the log of a capture cannot be written.
    pub(crate) fn close_log(&mut self) -> Result<u64, Error> {
        self.log.take().map_or(Ok(0), HdrLog::close)
    }

    /// Returns how many lines of the log were lost.
    #[cfg(feature = "live")]
    pub(crate) fn log_lines_lost(&self) -> u64 {
        self.log.as_ref().map_or(0, HdrLog::lines_lost)
    }

    /// Returns how many lines of the log were lost because its queue was full.
    #[cfg(feature = "live")]
    pub(crate) fn log_lines_refused(&self) -> u64 {
        self.log.as_ref().map_or(0, HdrLog::lines_refused)
    }

    /// Forgets the distributions so far, which earlier runs measured. Records of the present interval have them.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "a capture has no earlier runs"))]
    pub(crate) fn forget_totals(&mut self) {
        self.totals = Totals::default();
    }

    /// The distributions of the whole run.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The distributions of the whole run.
    pub fn into_totals(self) -> Totals {
        self.totals
    }

    fn end(&mut self, end: u64) -> Result<Vec<Record>, Error> {
        let (began, interval) = (self.began, end - self.began);
        self.began = end;
        let residence = self.residence.records(end, interval).into_iter();
        let residence = residence.map(|record| Record::Residence(Box::new(record)));
        let mut series: Vec<_> = self.series.drain().collect();
        if series.is_empty() {
            // The flows must not rank in a later interval.
            if let Some(worst) = &mut self.worst {
                worst.clear();
            }
            return Ok(residence.collect());
        }
        series.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
        if let Some(log) = &mut self.log {
            let of_groups = series.iter().filter(|(name, _)| name.group.level.is_none());
            log.write(of_groups.map(|(name, (distribution, _))| (name, distribution)), began, interval)?;
        }
        let record = |(name, (distribution, _)): &(SeriesName, (Distribution, Hosts))| {
            let quality = self.scores(name.method, distribution, interval);
            AggregateRecord::new(name, distribution, end, interval, quality)
        };
        if !self.reports_aggregates {
            return Ok(Vec::new());
        }
        let aggregates: Vec<_> = series.iter().map(record).collect();
        let hosts = series.iter().map(|(_, (_, hosts))| hosts);
        let worst = self.worst.as_mut().map(|it| it.records(aggregates.iter().zip(hosts), (end, interval)));
        let worst = worst.into_iter().flatten().map(|mut record| {
            record.name_networks(&self.networks);
            record
        });
        let aggregates = aggregates.into_iter().map(|record| Record::Aggregate(Box::new(record)));
        Ok(aggregates.chain(worst).chain(residence).collect())
    }

    fn scores(&self, method: Method, distribution: &Distribution, interval: u64) -> Scores {
        let Distribution { bins, range, sent, received, busiest, .. } = distribution;
        // The time that the traffic of counts covers. The sweep counts traffic at full seconds, even if intervals are
        // shorter.
        let length = if self.is_live { SECOND } else { interval };
        let measured = ScoreInput {
            method,
            bins: || bins.iter().copied().enumerate(),
            range: *range,
            traffic: [*sent, *received],
            throughput: quality::throughput(*busiest, length),
        };
        quality::scores(&self.profiles, &measured)
    }
}

/// The sort key of the records of an interval.
fn order(name: &SeriesName) -> impl Ord {
    // Groups come first, and then the levels of the tree, the outermost first.
    let depth = name.group.level.as_ref().map(|_| name.group.above.len());
    (depth, name.interface.as_deref(), &name.group.label, name.method, name.matched, name.side)
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
