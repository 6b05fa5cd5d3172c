//! The figures of a report.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::tz::TimeZone;
use pping_common::{limits::SECOND, method::Method, series::Traffic};
use serde::Serialize;

use super::marks::zoned;
use crate::{
    aggregate::{Measurements, RttSummary},
    foreign_text::sanitized,
    groups::GroupName,
    history::{Archive, Counts, DAY, Error, HOUR, Moment, Place, Survey, local},
    quality::{Profile, scores_of},
    recent::{RttAnswer, TrafficAnswer},
    spelling::listed,
};

/// The longest list of groups.
const GROUPS: usize = 15;

/// The fewest samples of a group that is listed: with fewer, a 95th percentile says little.
const FEWEST: u64 = 100;

/// The ratio beyond which a percentile has changed. It is the middle of a bin, and the next bin is 9 % higher, so what moved by
/// one bin may have changed by nothing.
const CLEAR: f64 = 1.15;

/// The name of the column that says where a group is.
const SITE: &str = "site";

/// A report. Times are in ns since the Unix epoch, round-trip times in ns.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The version of pping.
    pub(super) version: &'static str,
    /// The name of the host that made the report.
    pub(super) host: String,
    /// The first moment.
    pub(super) from: u64,
    /// The moment after the last.
    pub(super) to: u64,
    /// The start of the hour that was not over yet when the report was made; null if that is not in the range.
    pub(super) running_hour: Option<u64>,
    /// The site that it is about; all groups if it is null.
    pub(super) site: Option<String>,
    /// The name of the profile of all qualities.
    pub(super) profile: Arc<str>,
    /// What was measured, the place with the most samples first. The hours below are of that one.
    pub(super) places: Vec<Row>,
    /// The hours that were measured.
    pub(super) hours: Vec<Hour>,
    /// The hours of the day, in the zone of the host.
    pub(super) hours_of_day: Vec<HourOfDay>,
    /// The groups with the highest 95th percentiles.
    pub(super) worst: Vec<Row>,
    /// The groups with the lowest.
    pub(super) best: Vec<Row>,
    /// The number of groups that have enough samples in the week before, too.
    pub(super) compared: usize,
    /// The groups whose 95th percentile rose most since the week before, by more than 15 %.
    pub(super) worse: Vec<Row>,
    /// The groups whose 95th percentile fell most, by as much.
    pub(super) better: Vec<Row>,
    /// The number of groups with samples.
    pub(super) groups: usize,
    /// What was counted on all interfaces: what was seen, lost and not measured, whatever the site.
    pub(super) counts: Counts,
    /// What is wrong with files that are left out.
    pub(super) damaged: Vec<String>,
}

/// What was measured at a place, or of the worst series of a group.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The group, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<Arc<str>>,
    #[serde(flatten)]
    pub(super) place: Place,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// The same in the week before, if there were samples.
    pub(super) week_before: Option<Figures>,
}

/// The figures of a series.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    pub(super) rtt: RttAnswer,
    pub(super) sent: TrafficAnswer,
    pub(super) received: TrafficAnswer,
    /// The score by the profile, 0 to 100; null if the samples are too few.
    pub(super) quality: Option<u8>,
}

/// An hour.
#[derive(Debug, Serialize)]
pub(super) struct Hour {
    /// Its start.
    pub(super) time: u64,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// The same hour of the week before, if there were samples.
    pub(super) week_before: Option<Figures>,
}

/// An hour of the day, of all days.
#[derive(Debug, Serialize)]
pub(super) struct HourOfDay {
    /// 0 to 23.
    pub(super) hour: u8,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// The mean rate of both directions, bits per second, while pping measured.
    pub(super) bits_per_second: f64,
}

/// What a report is about.
pub(super) struct Scope<'a> {
    /// Whole hours.
    pub(super) range: Range<Moment>,
    /// The present.
    pub(super) now: Moment,
    /// The only site; all groups if it is `None`.
    pub(super) site: Option<&'a str>,
}

impl Report {
    /// Makes a report of the groups of a site, or of all.
    ///
    /// # Errors
    /// If there is no history, or nothing was measured.
    pub(super) fn new(archive: &Archive, scope: Scope<'_>, profiles: &[Profile]) -> Result<Self, Error> {
        let Scope { range, now, site } = scope;
        let is_wanted =
            |group: &GroupName| site.is_none_or(|site| site_of(group).is_some_and(|it| **it == *site));
        let mut present = archive.survey(range.clone(), is_wanted)?;
        let earlier = range.start.saturating_sub(7 * DAY)..range.end.saturating_sub(7 * DAY);
        let before = archive.survey(earlier, is_wanted)?;
        let profile =
            profiles.first().ok_or_else(|| Error::Usage("--quality: there is no profile".to_owned()))?;
        let scored = Scored { profile, zone: TimeZone::system() };
        let places = scored.places(&present, &before);
        let Some(main) = places.first().map(|row| row.place.clone()) else {
            return Err(nothing(archive, &range, site, &present.damaged));
        };
        let hours = scored.hours(&main, &present, &before);
        let hours_of_day = scored.hours_of_day(&main, &present);
        let groups = scored.groups(&present, &before);
        let rise = |row: &Row| {
            let before = row.week_before.as_ref().filter(|before| is_clear(&row.figures, before))?;
            let (now, before) = (rank(&row.figures), rank(before));
            Some(std::array::from_fn(|at| now[at] - before[at]))
        };
        let negated = |key: [i128; 3]| key.map(|it| -it);
        present.damaged.extend(before.damaged);
        present.damaged.sort_unstable();
        present.damaged.dedup();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            from: range.start * SECOND,
            to: range.end * SECOND,
            running_hour: range.contains(&now).then(|| (now - now % HOUR) * SECOND),
            site: site.map(ToOwned::to_owned),
            profile: Arc::clone(&profile.name),
            compared: groups.iter().filter(|row| row.week_before.is_some()).count(),
            worst: top(&groups, |row| Some(rank(&row.figures))),
            best: top(&groups, |row| Some(negated(rank(&row.figures)))),
            worse: top(&groups, |row| rise(row).filter(|rise| rise[0] > 0)),
            better: top(&groups, |row| rise(row).filter(|rise| rise[0] < 0).map(negated)),
            places,
            hours,
            hours_of_day,
            groups: groups.len(),
            counts: present.counts,
            damaged: present.damaged,
        })
    }
}

/// What groups are ranked by: the 95th percentile; of those with the same, the 99th; then the mean.
fn rank(Figures { rtt, .. }: &Figures) -> [i128; 3] {
    [rtt.p95, rtt.p99, rtt.mean].map(i128::from)
}

/// Whether a 95th percentile changed by more than a bin.
pub(super) fn is_clear(now: &Figures, before: &Figures) -> bool {
    let (now, before) = (now.rtt.p95.max(1) as f64, before.rtt.p95.max(1) as f64);
    (now / before).max(before / now) > CLEAR
}

/// The groups with the highest keys, and of those with the same the first by their labels. Groups without a key are left out.
fn top(groups: &[Row], key: impl Fn(&Row) -> Option<[i128; 3]>) -> Vec<Row> {
    let mut ranked: Vec<_> = groups.iter().filter_map(|row| Some((key(row)?, row))).collect();
    ranked.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.group.cmp(&other.1.group)));
    ranked.into_iter().take(GROUPS).map(|(_, row)| row.clone()).collect()
}

fn site_of(group: &GroupName) -> Option<&Arc<str>> {
    group.columns.iter().find(|(name, _)| **name == *SITE).map(|(_, site)| site)
}

/// Says that nothing was measured, which sites there are, and what is wrong with files of the range.
fn nothing(archive: &Archive, range: &Range<Moment>, site: Option<&str>, damaged: &[String]) -> Error {
    let (from, to) = (local(range.start), local(range.end));
    let Some(site) = site else {
        return match archive.extent() {
            Ok(extent) => {
                Error::empty(format!("nothing was measured from {from} to {to}; {extent}"), damaged)
            }
            Err(error) => error,
        };
    };
    let sites = Mutex::new(BTreeSet::new());
    let note = |group: &GroupName| {
        if let Some(site) = site_of(group) {
            sites.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(site));
        }
        false
    };
    if let Err(error) = archive.survey(range.clone(), note) {
        return error;
    }
    let sites = sites.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sites: Vec<&str> = sites.iter().map(|site| &**site).collect();
    let known = if sites.is_empty() {
        format!("no group had a site; give the groups file a column `{SITE}`")
    } else {
        format!("there are {}", listed(&sites))
    };
    let site = sanitized(site);
    Error::empty(format!("nothing was measured of the site `{site}` from {from} to {to}; {known}"), damaged)
}

/// Makes figures, scored by a profile.
struct Scored<'a> {
    profile: &'a Profile,
    /// The zone of this host.
    zone: TimeZone,
}

impl Scored<'_> {
    /// The figures of measurements, if there are samples.
    fn figures(&self, measured: &Measurements, method: Method) -> Option<Figures> {
        let rtts: RttSummary = measured.rtts()?;
        let quality = scores_of(measured, method, std::slice::from_ref(self.profile));
        let [sent, received] = measured.traffic.map(Traffic::into);
        Some(Figures { rtt: rtts.into(), sent, received, quality: quality.into_values().next().flatten() })
    }

    fn places(&self, present: &Survey, before: &Survey) -> Vec<Row> {
        let sum = |hours: &BTreeMap<Moment, Measurements>| {
            let mut sum = Measurements::default();
            for hour in hours.values() {
                sum.merge(hour);
            }
            sum
        };
        let figures = |survey: &Survey, place: &Place| {
            survey.hours.get(place).and_then(|hours| self.figures(&sum(hours), place.method))
        };
        let row = |place: &Place| {
            let figures_now = figures(present, place)?;
            let week_before = figures(before, place);
            Some(Row { group: None, place: place.clone(), figures: figures_now, week_before })
        };
        let mut rows: Vec<Row> = present.hours.keys().filter_map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.figures.rtt.count));
        rows
    }

    fn hours(&self, place: &Place, present: &Survey, before: &Survey) -> Vec<Hour> {
        let earlier = before.hours.get(place);
        let hour = |(time, measured): (&Moment, &Measurements)| {
            let week_before = earlier.and_then(|hours| hours.get(&time.checked_sub(7 * DAY)?));
            Some(Hour {
                time: time * SECOND,
                figures: self.figures(measured, place.method)?,
                week_before: week_before.and_then(|measured| self.figures(measured, place.method)),
            })
        };
        present.hours.get(place).into_iter().flatten().filter_map(hour).collect()
    }

    /// An hour that a day has twice, because clocks are set back, is added up.
    fn hours_of_day(&self, place: &Place, present: &Survey) -> Vec<HourOfDay> {
        let hour_of_day = |moment| u8::try_from(zoned(moment, &self.zone).hour()).unwrap_or(0);
        let mut hours: BTreeMap<u8, (u64, Measurements)> = BTreeMap::new();
        for (&time, &seconds) in &present.measured {
            hours.entry(hour_of_day(time)).or_default().0 += seconds;
        }
        for (&time, measured) in present.hours.get(place).into_iter().flatten() {
            let (seconds, sum) = hours.entry(hour_of_day(time)).or_default();
            sum.merge(measured);
            // A file may have lost what was counted.
            if present.measured.get(&time).is_none_or(|&seconds| seconds == 0) {
                *seconds += HOUR;
            }
        }
        let hour = |(hour, (seconds, measured)): (u8, (u64, Measurements))| {
            let bytes: u64 = measured.traffic.iter().map(|it| it.bytes).sum();
            let bits_per_second = bytes as f64 * 8.0 / seconds.max(1) as f64;
            Some(HourOfDay { hour, figures: self.figures(&measured, place.method)?, bits_per_second })
        };
        hours.into_iter().filter_map(hour).collect()
    }

    /// The worst series of each group, by label.
    fn groups(&self, present: &Survey, before: &Survey) -> Vec<Row> {
        let mut groups: BTreeMap<&Arc<str>, ([u64; 3], Row)> = BTreeMap::new();
        for (key, sum) in &present.groups {
            let Some(rtts) = sum.measured.rtts().filter(|rtts| rtts.count >= FEWEST) else { continue };
            let (label, place) = key;
            let known = groups.entry(label);
            if matches!(&known, Entry::Occupied(known) if known.get().0 >= rtts.rank()) {
                continue;
            }
            let Some(figures) = self.figures(&sum.measured, place.method) else { continue };
            let week_before = before.groups.get(key);
            let week_before = week_before.and_then(|sum| self.figures(&sum.measured, place.method));
            let row = Row {
                figures,
                week_before: week_before.filter(|before| before.rtt.count >= FEWEST),
                group: Some(Arc::clone(label)),
                place: place.clone(),
            };
            known.insert_entry((rtts.rank(), row));
        }
        groups.into_values().map(|(_, row)| row).collect()
    }
}
