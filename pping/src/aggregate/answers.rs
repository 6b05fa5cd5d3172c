//! What is told of what was measured, beside the samples themselves: distributions by interval, flows at their end, and
//! the summary of it all.

use std::{collections::HashMap, sync::Arc, time::Duration};

use foldhash::fast::RandomState;
use pping_common::abi::Tally;

use super::{Distribution, Totals, flows::Flows};
use crate::{
    Error,
    config::Aggregation,
    event::Event,
    groups::SeriesName,
    records::HdrLog,
    records::{AggregateRecord, FlowSummaryRecord, Record},
};

/// How often distributions are logged where nobody says.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Gathers slices of series and events, and makes records of them. Times are ns since the Unix epoch.
///
/// Intervals end at multiples of their length since the epoch, so that those of several machines and of several runs
/// are the same; only the first and the last may be shorter.
pub struct Answers {
    /// The length of an interval, ns; 0 if there are none.
    interval: u64,
    has_records: bool,
    has_individual: bool,
    flows: Option<Flows>,
    log: Option<HdrLog>,
    /// When the present interval began.
    began: u64,
    /// What series got in the present interval. One that got nothing is forgotten.
    series: HashMap<SeriesName, Distribution, RandomState>,
    totals: Totals,
}

impl Answers {
    /// Begins to gather at `start`; summaries of flows are of at most `max_flows` of each family at a time.
    ///
    /// # Errors
    /// [`Error::OpenHdrLog`] when the log cannot be opened.
    pub fn new(aggregation: &Aggregation, max_flows: u32, start: u64) -> Result<Self, Error> {
        let log = aggregation.hdr_log.as_deref().map(HdrLog::open).transpose()?;
        let interval = aggregation.interval.or(log.as_ref().map(|_| LOG_INTERVAL));
        Ok(Self {
            interval: interval.map_or(0, |interval| interval.as_nanos() as u64),
            has_records: aggregation.interval.is_some(),
            has_individual: aggregation.individual,
            flows: aggregation.flow_summary.then(|| Flows::with_room_for(2 * max_flows as usize)),
            log,
            began: start,
            series: HashMap::default(),
            totals: Totals::default(),
        })
    }

    /// From now on goes without the log while it cannot be written to, in place of an error.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "a capture can be read again"))]
    pub(crate) fn endure(&mut self) {
        if let Some(log) = &mut self.log {
            log.endure();
        }
    }

    /// Takes what a series got since it was last taken.
    pub fn take(&mut self, name: &SeriesName, tally: &Tally) {
        if tally.is_empty() {
            return;
        }
        self.totals.take(name.method, name.matched, tally);
        if self.interval == 0 {
            return;
        }
        if let Some(distribution) = self.series.get_mut(name) {
            distribution.add(tally);
        } else {
            self.series.entry(name.clone()).or_default().add(tally);
        }
    }

    /// Takes an event, with the interface it is of, the label of its group and what turns its times into those since
    /// 1970. Returns what is to be written of it.
    pub fn event(
        &mut self,
        event: &Event,
        interface: Option<Arc<str>>,
        group: Option<Arc<str>>,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Record> {
        match (event, &mut self.flows) {
            (Event::Rtt(sample), Some(flows)) => flows.sample(sample),
            (Event::End(end), Some(flows)) => {
                let rtts = flows.end(&end.endpoints);
                let record = FlowSummaryRecord::new(end, interface, rtts, epoch)?;
                return Some(Record::FlowSummary(Box::new(record)));
            }
            _ => {}
        }
        self.has_individual.then(|| Record::new(event, interface, group, epoch)).flatten()
    }

    /// When the present interval ends, if there are intervals.
    pub fn next(&self) -> Option<u64> {
        (self.began / self.interval.max(1))
            .checked_add(1)?
            .checked_mul(self.interval)
            .filter(|_| self.interval > 0)
    }

    /// Whether the present interval is over. Take what series got before [`Answers::tick`].
    pub fn is_due(&self, now: u64) -> bool {
        self.next().is_some_and(|next| now >= next)
    }

    /// Ends the present interval if it is over, and returns its records. Should several have passed, they are one.
    ///
    /// # Errors
    /// [`Error::Output`] when the log cannot be written.
    pub fn tick(&mut self, now: u64) -> Result<Vec<Record>, Error> {
        if self.is_due(now) { self.end(now - now % self.interval) } else { Ok(Vec::new()) }
    }

    /// Ends the last interval, over or not.
    ///
    /// # Errors
    /// [`Error::Output`] when the log cannot be written.
    pub fn finish(&mut self, now: u64) -> Result<Vec<Record>, Error> {
        self.end(now.max(self.began.saturating_add(1)))
    }

    /// Goes on at another time, be it earlier, after [`Answers::finish`].
    pub fn restart(&mut self, now: u64) {
        self.began = now;
        if let Some(log) = &mut self.log {
            log.restart();
        }
    }

    /// Opens the log again.
    pub fn reopen(&mut self) {
        if let Some(log) = &mut self.log {
            log.reopen();
        }
    }

    /// The distributions of it all.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The distributions of it all, at the end.
    pub fn into_totals(self) -> Totals {
        self.totals
    }

    fn end(&mut self, end: u64) -> Result<Vec<Record>, Error> {
        let (began, interval) = (self.began, end - self.began);
        self.began = end;
        let mut series: Vec<_> = self.series.drain().collect();
        if series.is_empty() {
            return Ok(Vec::new());
        }
        series.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
        if let Some(log) = &mut self.log {
            log.write(series.iter().map(|(name, distribution)| (name, distribution)), began, interval)?;
        }
        let record = |(name, distribution): &(SeriesName, Distribution)| {
            Record::Aggregate(Box::new(AggregateRecord::new(name, distribution, end, interval)))
        };
        Ok(if self.has_records { series.iter().map(record).collect() } else { Vec::new() })
    }
}

/// What decides on the order of the records of an interval.
fn order(name: &SeriesName) -> impl Ord {
    (name.interface.as_deref(), &name.group.label, name.method, name.matched)
}

#[cfg(test)]
mod tests {
    use pping_common::{abi::Direction, group::GroupKey, rtt::Method};

    use super::*;
    use crate::groups::{GroupName, Labels};

    const SECOND: u64 = 1_000_000_000;

    fn name(matched: Direction) -> SeriesName {
        let group = Arc::new(GroupName::new(&GroupKey::ALL, &Labels::default()));
        SeriesName { interface: None, method: Method::TcpTs, matched: Some(matched), group }
    }

    fn tally(rtt: u64) -> Tally {
        let mut tally = Tally::EMPTY;
        tally.sample(rtt);
        tally.sent.packets = 3;
        tally
    }

    fn aggregates(records: Vec<Record>) -> Vec<AggregateRecord> {
        let only = |record| match record {
            Record::Aggregate(record) => *record,
            other => panic!("{other:?}"),
        };
        records.into_iter().map(only).collect()
    }

    fn answers(start: u64) -> Answers {
        let interval = Some(Duration::from_secs(10));
        Answers::new(&Aggregation { interval, ..Aggregation::NONE }, 10, start).unwrap()
    }

    #[test]
    fn intervals_end_at_multiples_of_their_length() {
        let mut answers = answers(1_003 * SECOND);
        assert_eq!(answers.next(), Some(1_010 * SECOND));
        answers.take(&name(Direction::Ingress), &tally(5));
        answers.take(&name(Direction::Ingress), &tally(7));
        answers.take(&name(Direction::Egress), &tally(9));
        answers.take(&name(Direction::Egress), &Tally::EMPTY);
        assert!(answers.tick(1_009 * SECOND).unwrap().is_empty());
        let records = aggregates(answers.tick(1_010 * SECOND + 5).unwrap());
        let shown: Vec<_> = records
            .iter()
            .map(|it| (it.timestamp / SECOND, it.interval / SECOND, it.matched, it.count, it.sent_packets))
            .collect();
        assert_eq!(
            shown,
            [(1_010, 7, Some(Direction::Ingress), 2, 6), (1_010, 7, Some(Direction::Egress), 1, 3)]
        );
        // Nothing came, so there is nothing to say, however many intervals that was.
        assert!(answers.tick(1_040 * SECOND).unwrap().is_empty());
        answers.take(&name(Direction::Egress), &tally(9));
        let records = aggregates(answers.finish(1_044 * SECOND).unwrap());
        assert_eq!((records[0].timestamp, records[0].interval), (1_044 * SECOND, 4 * SECOND));
        let counts: Vec<_> = answers.totals().series().map(|(.., it)| it.count()).collect();
        assert_eq!(counts, [2, 2]);
    }

    #[test]
    fn packets_without_samples_are_told_without_rtts() {
        let mut answers = answers(0);
        let mut tally = Tally::EMPTY;
        tally.received.packets = 1;
        answers.take(&name(Direction::Egress), &tally);
        let records = aggregates(answers.finish(SECOND).unwrap());
        let text = serde_json::to_string(&records[0]).unwrap();
        assert!(text.contains(r#""count":0,"histogram":[],"sent_packets":0,"#), "{text}");
    }
}
