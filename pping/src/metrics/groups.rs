//! Series by group, counted under the labels that there is room for.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::abi::{BUCKETS, Tally};

use super::{
    inflation::{Inflated, PERCENTILES},
    labelled::{Exposed, is_free},
    page::{self, Kind, Writer},
    series::{Series, SeriesId},
};
use crate::{
    groups::{GroupName, OTHER, SeriesName},
    kernel::ledger::Ledger,
};

/// All of them.
#[derive(Debug)]
pub(super) struct Groups {
    baseline: Duration,
    exposed: Exposed,
    series: IndexMap<SeriesId, Series, RandomState>,
    /// Groups that have series under their own label, shown at present or not.
    known: HashMap<Arc<str>, Known, RandomState>,
    other: Arc<str>,
    /// Where series are kept for whoever comes after this run, if they are.
    ledger: Option<Ledger>,
    /// Turns that are booked there.
    booked: u32,
    /// Series that changed since.
    touched: Vec<usize>,
}

#[derive(Debug)]
struct Known {
    name: Arc<GroupName>,
    series: usize,
}

impl Groups {
    pub(super) fn new(limit: u32, baseline: Duration, now: Instant) -> Self {
        Self {
            baseline,
            exposed: Exposed::new(limit as usize, now),
            series: IndexMap::default(),
            known: HashMap::default(),
            other: OTHER.into(),
            ledger: None,
            booked: 0,
            touched: Vec::new(),
        }
    }

    /// Keeps series from now on, so that what they got has to be booked.
    pub(super) fn keep_in(&mut self, ledger: Ledger) {
        self.ledger = Some(ledger);
    }

    /// Lets so many groups have a label, and tells how far RTTs are from the lowest of that time, from now on.
    pub(super) fn change(&mut self, limit: u32, baseline: Duration) {
        self.exposed.set_limit(limit as usize);
        if baseline != self.baseline {
            self.baseline = baseline;
            for series in self.series.values_mut() {
                series.inflation.set_baseline(baseline);
            }
        }
        self.note_labels();
    }

    /// Goes on from what a run before this one told of these series, when `booked` turns had been booked.
    pub(super) fn adopt(&mut self, names: &[SeriesName], booked: u32, now: Instant) {
        self.booked = booked;
        let other = Arc::clone(&self.other);
        for name in names {
            for label in [&name.group.label, &other] {
                let id = SeriesId::new(name, label);
                let kept = self.ledger.as_ref().and_then(|ledger| ledger.find(id.fingerprint(), booked));
                let Some((entry, balance, is_labelled)) = kept else { continue };
                if *label == name.group.label {
                    self.exposed.adopt(label, is_labelled);
                }
                let index = self.index_of(id, name, now);
                let series = &mut self.series[index];
                series.account = Some(entry);
                series.restore(&balance);
            }
        }
    }

    /// The place of a series, which is made if there is none; `name` is one whose samples it counts.
    fn index_of(&mut self, id: SeriesId, name: &SeriesName, now: Instant) -> usize {
        let entry = match self.series.entry(id) {
            indexmap::map::Entry::Occupied(occupied) => return occupied.index(),
            indexmap::map::Entry::Vacant(vacant) => vacant,
        };
        let id = entry.key();
        if let Some(known) = self.known.get_mut(&id.group) {
            known.series += 1;
        } else if name.group.label == id.group {
            let known = Known { name: Arc::clone(&name.group), series: 1 };
            self.known.insert(Arc::clone(&id.group), known);
        }
        let mut series = Series::new(id, self.baseline, now);
        if let Some(ledger) = &mut self.ledger {
            // One that is always there may have been quiet since this run began.
            if let Some((entry, balance, _)) = ledger.find(id.fingerprint(), self.booked) {
                series.account = Some(entry);
                series.restore(&balance);
            } else {
                series.account = ledger.open(id.fingerprint(), &id.group, self.booked);
            }
        }
        let index = entry.index();
        entry.insert(series);
        index
    }

    /// Writes down what series got up to the end of this turn. It is in force once the turn is booked.
    pub(super) fn book(&mut self, turn: u32) {
        let Self { ledger: Some(ledger), touched, series, exposed, .. } = self else { return };
        touched.sort_unstable();
        touched.dedup();
        for index in touched.drain(..) {
            let Some((id, series)) = series.get_index_mut(index) else { continue };
            let balance = series.balance();
            if let Some(entry) = &mut series.account {
                ledger.put(entry, balance, turn);
                ledger.label(*entry, exposed.is_labelled(&id.group));
            }
        }
        self.booked = turn;
    }

    /// Adds what series got since the last time.
    pub(super) fn take(&mut self, slices: &[(SeriesName, Tally)], now: Instant) {
        if self.exposed.roll(now) {
            self.note_labels();
        }
        for (name, tally) in slices {
            let group = &name.group.label;
            let is_labelled = self.exposed.take(group, tally.count());
            let id = SeriesId::new(name, if is_labelled { group } else { &self.other });
            let index = self.index_of(id, name, now);
            self.series[index].take(tally, now);
            if self.ledger.is_some() {
                self.touched.push(index);
            }
            if is_labelled
                && let Some(known) = self.known.get_mut(group)
                && !Arc::ptr_eq(&known.name, &name.group)
            {
                // What else is known of it may have changed.
                known.name = Arc::clone(&name.group);
            }
        }
    }

    /// Notes which groups have a label, as some have lost theirs to others.
    fn note_labels(&mut self) {
        let Self { ledger: Some(ledger), series, exposed, .. } = self else { return };
        for (id, series) in series {
            if let Some(entry) = series.account {
                ledger.label(entry, exposed.is_labelled(&id.group));
            }
        }
    }

    /// Forgets a series whose group expired. Labels that are always there stay.
    pub(super) fn forget(&mut self, name: &SeriesName) {
        let group = &name.group.label;
        if is_free(group) {
            return;
        }
        let id = SeriesId::new(name, group);
        let was_there = self.series.swap_remove(&id).is_some();
        if let Some(ledger) = &mut self.ledger {
            ledger.close(id.fingerprint());
        }
        if let Some(known) = self.known.get_mut(group) {
            known.series -= usize::from(was_there);
            if known.series > 0 {
                return;
            }
            self.known.remove(group);
        }
        self.exposed.forget(group);
    }

    /// Writes what there is of the groups that have a label.
    pub(super) fn write(&mut self, page: &mut Writer, now: Instant) {
        let Self { exposed, series, known, .. } = self;
        let mut shown: Vec<(&Series, bool, Inflated)> = Vec::with_capacity(series.len());
        for (id, series) in series.iter_mut().filter(|(id, _)| exposed.is_labelled(&id.group)) {
            let inflated = series.inflation.tell(now);
            shown.push((series, *id.group == *OTHER, inflated));
        }
        histogram(page, &shown);
        gauges(page, &shown);
        traffic(page, &shown);
        let mut known: Vec<_> = known
            .values()
            .map(|known| &known.name)
            .filter(|name| !name.more.is_empty() && exposed.is_labelled(&name.label))
            .collect();
        if !known.is_empty() {
            known.sort_unstable_by(|a, b| a.label.cmp(&b.label));
            page.family("pping_group", None, Kind::Info, "What the groups file says of a group");
            for name in known {
                page.whole("pping_group_info{", &information(name), 1);
            }
        }
    }
}

type Shown<'a> = [(&'a Series, bool, Inflated)];

fn histogram(page: &mut Writer, shown: &Shown<'_>) {
    const LAST: usize = BUCKETS - 1;
    let bounds: [String; BUCKETS] = std::array::from_fn(|bucket| match bucket {
        LAST => "pping_rtt_seconds_bucket{le=\"+Inf\",".to_owned(),
        octave => format!("pping_rtt_seconds_bucket{{le=\"{}\",", f64::from(1_u32 << octave) / 1e6),
    });
    let help = "Round-trip times between this host and the one that replied";
    page.family("pping_rtt_seconds", Some("seconds"), Kind::Histogram, help);
    for (series, ..) in shown {
        let counts = series.cumulative();
        // Where packets pass but nothing is timed, as in the direction of an acknowledged download, 28 lines of zeroes
        // would say nothing.
        if counts[LAST] == 0 {
            continue;
        }
        for (bound, count) in bounds.iter().zip(counts) {
            page.whole(bound, &series.labels, count);
        }
        page.seconds("pping_rtt_seconds_sum{", &series.labels, series.sum);
        page.whole("pping_rtt_seconds_count{", &series.labels, counts[LAST]);
    }
}

fn gauges(page: &mut Writer, shown: &Shown<'_>) {
    let mut gauge = |name: &str, help, value: &dyn Fn(&Inflated, bool) -> Option<u64>| {
        page.family(name, Some("seconds"), Kind::Gauge, help);
        let before = format!("{name}{{");
        for (series, is_other, inflated) in shown {
            if let Some(value) = value(inflated, *is_other) {
                page.seconds(&before, &series.labels, value.into());
            }
        }
    };
    gauge("pping_min_rtt_seconds", "Lowest round-trip time of the last minute", &|told, _| told.lately);
    // What `other` stands for changes, and so would its lowest.
    gauge(
        "pping_rtt_baseline_seconds",
        "Lowest round-trip time of the time that --baseline says",
        &|told, is_other| told.baseline.filter(|_| !is_other),
    );
    let help = "How far percentiles of the last minute's round-trip times are above the baseline";
    page.family("pping_rtt_inflation_seconds", Some("seconds"), Kind::Gauge, help);
    let before =
        PERCENTILES.map(|percentile| format!("pping_rtt_inflation_seconds{{percentile=\"{percentile}\","));
    for (series, _, inflated) in shown.iter().filter(|(_, is_other, _)| !is_other) {
        for (before, above) in before.iter().zip(inflated.above.into_iter().flatten()) {
            page.seconds(before, &series.labels, above.into());
        }
    }
}

fn traffic(page: &mut Writer, shown: &Shown<'_>) {
    for (name, help, value) in [
        (
            "pping_group_packets",
            "Packets of the flows of a group, by whether their senders are timed or reply",
            (|traffic| traffic.packets) as fn(&pping_common::abi::Traffic) -> u64,
        ),
        ("pping_group_bytes", "Bytes above the transport header in these packets", |traffic| traffic.bytes),
        ("pping_group_tcp_retransmissions", "TCP segments among these packets that were sent again", |it| {
            it.retransmissions
        }),
    ] {
        page.family(name, None, Kind::Counter, help);
        let senders = ["timed", "replying"].map(|sender| format!("{name}_total{{sender=\"{sender}\","));
        for (series, ..) in shown {
            for (before, traffic) in senders.iter().zip(&series.traffic) {
                page.whole(before, &series.labels, value(traffic));
            }
        }
    }
}

/// What else is known of a group, as labels. The columns of a file may be called what no label can be.
fn information(name: &GroupName) -> String {
    let mut labels = String::new();
    page::label(&mut labels, "group", &name.label);
    let mut taken: HashSet<String> = HashSet::from(["group".to_owned()]);
    for (column, value) in &name.more {
        let mut label = label_name(column);
        while !taken.insert(label.clone()) {
            label.push('_');
        }
        page::label(&mut labels, &label, value);
    }
    labels.push_str("} ");
    labels
}

/// The nearest name that a label can have. Two underscores in front are Prometheus' own.
fn label_name(column: &str) -> String {
    let word = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = column.chars().map(word).collect();
    match name.trim_start_matches('_') {
        "" => "column".to_owned(),
        name if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{name}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
