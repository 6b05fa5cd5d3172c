//! The figures of a report.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{Timestamp, tz::TimeZone};
use pping_common::{limits::SECOND, method::Method, series::Traffic};
use serde::Serialize;

use crate::{
    aggregate::{Measurements, RttSummary},
    groups::{GroupName, SeriesName},
    history::{Archive, Counts, DAY, Error, HOUR, Moment, Place, Survey, local},
    quality::{Profile, scores_of},
    recent::{RttAnswer, TrafficAnswer},
};

/// The longest list of groups.
const GROUPS: usize = 15;

/// The fewest samples of a group that is listed: with fewer, a 95th percentile says little.
const FEWEST: u64 = 100;

/// The name of the column that says where a group is.
const SITE: &str = "site";

/// A report. Times are in ns since the Unix epoch, round-trip times in ns.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The version of pping.
    pub(super) version: &'static str,
    /// The first moment.
    pub(super) from: u64,
    /// The moment after the last.
    pub(super) to: u64,
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
    /// The groups whose 95th percentile rose most since the week before.
    pub(super) worse: Vec<Row>,
    /// The groups whose 95th percentile fell most.
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
    /// The mean rate of both directions, bits per second, in those of the hours that had packets.
    pub(super) bits_per_second: f64,
}

impl Report {
    /// Makes a report of the groups of a site, or of all.
    ///
    /// # Errors
    /// If there is no history, or nothing was measured.
    pub(super) fn new(
        archive: &Archive,
        range: Range<Moment>,
        site: Option<&str>,
        profiles: &[Profile],
    ) -> Result<Self, Error> {
        let is_wanted =
            |group: &GroupName| site.is_none_or(|site| site_of(group).is_some_and(|it| **it == *site));
        let mut present = archive.survey(range.clone(), is_wanted)?;
        let earlier = range.start.saturating_sub(7 * DAY)..range.end.saturating_sub(7 * DAY);
        let before = archive.survey(earlier, is_wanted)?;
        let profile =
            profiles.first().ok_or_else(|| Error::Usage("--quality: there is no profile".to_owned()))?;
        let scored = Scored { profile };
        let places = scored.places(&present, &before);
        let Some(main) = places.first().map(|row| row.place.clone()) else {
            return Err(nothing(archive, &range, site));
        };
        let hours = scored.hours(&main, &present, &before);
        let hours_of_day = scored.hours_of_day(&main, &present);
        let groups = scored.groups(&present, &before);
        let top = |key: &dyn Fn(&Row) -> Option<f64>| {
            let mut ranked: Vec<(f64, &Row)> =
                groups.iter().filter_map(|row| Some((key(row)?, row))).collect();
            ranked.sort_by(|one, other| {
                other.0.total_cmp(&one.0).then_with(|| one.1.group.cmp(&other.1.group))
            });
            ranked.into_iter().take(GROUPS).map(|(_, row)| row.clone()).collect()
        };
        let p95 = |row: &Row| row.figures.rtt.p95 as f64;
        let change = |row: &Row| row.week_before.as_ref().map(|before| p95(row) - before.rtt.p95 as f64);
        present.damaged.extend(before.damaged);
        present.damaged.sort_unstable();
        present.damaged.dedup();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            from: range.start * SECOND,
            to: range.end * SECOND,
            site: site.map(ToOwned::to_owned),
            profile: Arc::clone(&profile.name),
            worst: top(&|row| Some(p95(row))),
            best: top(&|row| Some(-p95(row))),
            worse: top(&|row| change(row).filter(|&change| change > 0.0)),
            better: top(&|row| change(row).filter(|&change| change < 0.0).map(|change| -change)),
            places,
            hours,
            hours_of_day,
            groups: groups.len(),
            counts: present.counts,
            damaged: present.damaged,
        })
    }
}

fn site_of(group: &GroupName) -> Option<&Arc<str>> {
    group.columns.iter().find(|(name, _)| **name == *SITE).map(|(_, site)| site)
}

/// Says that nothing was measured, and which sites there are.
fn nothing(archive: &Archive, range: &Range<Moment>, site: Option<&str>) -> Error {
    let (from, to) = (local(range.start), local(range.end));
    let Some(site) = site else {
        return Error::Empty(format!(
            "nothing was measured from {from} to {to}; `pping history check` says what there is"
        ));
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
        format!("there are {}", sites.join(", "))
    };
    Error::Empty(format!("nothing was measured of the site `{site}` from {from} to {to}; {known}"))
}

/// Makes figures, scored by a profile.
struct Scored<'a> {
    profile: &'a Profile,
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

    fn hours_of_day(&self, place: &Place, present: &Survey) -> Vec<HourOfDay> {
        let mut hours: BTreeMap<u8, (u64, Measurements)> = BTreeMap::new();
        for (time, measured) in present.hours.get(place).into_iter().flatten() {
            let (seconds, sum) = hours.entry(hour_of_day(*time)).or_default();
            *seconds += HOUR;
            sum.merge(measured);
        }
        let hour = |(hour, (seconds, measured)): (u8, (u64, Measurements))| {
            let bytes: u64 = measured.traffic.iter().map(|it| it.bytes).sum();
            let bits_per_second = bytes as f64 * 8.0 / seconds as f64;
            Some(HourOfDay { hour, figures: self.figures(&measured, place.method)?, bits_per_second })
        };
        hours.into_iter().filter_map(hour).collect()
    }

    /// The worst series of each group.
    fn groups(&self, present: &Survey, before: &Survey) -> Vec<Row> {
        let mut groups: HashMap<Arc<str>, (u64, &SeriesName, &Measurements)> = HashMap::new();
        for (name, measured) in &present.groups {
            let Some(rtts) = measured.rtts().filter(|rtts| rtts.count >= FEWEST) else { continue };
            let p95 = rtts.percentiles[2];
            let known = groups.entry(Arc::clone(&name.group.label)).or_insert((p95, name, measured));
            let rank = |p95, name: &SeriesName| (p95, Place::of(name));
            if rank(p95, name) > rank(known.0, known.1) {
                *known = (p95, name, measured);
            }
        }
        // A group is the same by its label, even if its addresses or other columns have changed.
        let earlier: HashMap<(&str, Place), &Measurements> = before
            .groups
            .iter()
            .map(|(name, measured)| ((&*name.group.label, Place::of(name)), measured))
            .collect();
        let row = |(label, (_, name, measured)): (Arc<str>, (u64, &SeriesName, &Measurements))| {
            let place = Place::of(name);
            let week_before = earlier.get(&(&*label, place.clone()));
            let week_before = week_before.and_then(|measured| self.figures(measured, name.method));
            Some(Row {
                figures: self.figures(measured, name.method)?,
                week_before: week_before.filter(|before| before.rtt.count >= FEWEST),
                group: Some(label),
                place,
            })
        };
        groups.into_iter().filter_map(row).collect()
    }
}

/// The hour of the day of a moment, in the zone of this host.
fn hour_of_day(moment: Moment) -> u8 {
    let timestamp = i64::try_from(moment).ok().and_then(|second| Timestamp::from_second(second).ok());
    u8::try_from(timestamp.unwrap_or_default().to_zoned(TimeZone::system()).hour()).unwrap_or(0)
}
