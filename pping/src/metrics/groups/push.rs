//! The metrics of groups as values, for an exporter that pushes them.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use super::{
    super::{
        export::{Attributes, ExportTotals, Family, Point, Points},
        families::Families,
        inflation::{Inflated, PERCENTILES},
    },
    Groups, SENDERS, columns, has_baseline, ratio,
};
use crate::{config::Temporality, groups::Kind};

impl Groups {
    /// Returns the metrics of all groups that have a label, as values. With [`Temporality::Delta`] their counts start again.
    pub(in crate::metrics) fn take(
        &mut self,
        temporality: Temporality,
        now: Instant,
        at: SystemTime,
    ) -> Vec<Family> {
        let Self { families: metrics, labelled, series, known, profiles, .. } = self;
        let metrics: &'static Families = metrics;
        if self.kind != Kind::Group && series.is_empty() {
            return Vec::new();
        }
        let (mut rtts, mut lowest, mut baselines, mut inflation) = (vec![], vec![], vec![], vec![]);
        let mut quality = vec![];
        let mut traffic = metrics.traffic.each_ref().map(|_| vec![]);
        for (id, series) in series.iter_mut().filter(|(id, _)| labelled.is_labelled(&id.group)) {
            let Inflated { minimum, baseline, above } = series.inflation.report(now);
            let Some(pushed) = &mut series.pushed else { continue };
            let since = pushed.since;
            let attributes = id.attributes();
            let gauge = |attributes, ns: u64| Point { attributes, since, value: ns as f64 / 1e9 };
            quality.extend(series.inflation.recent.scores(profiles, id.method).into_iter().filter_map(
                |(profile, score)| {
                    let attributes = with(&attributes, "profile", profile);
                    Some(Point { attributes, since, value: ratio(score?) })
                },
            ));
            lowest.extend(minimum.map(|ns| gauge(attributes.clone(), ns)));
            if has_baseline(id) {
                baselines.extend(baseline.map(|ns| gauge(attributes.clone(), ns)));
                let above = PERCENTILES.into_iter().zip(above.into_iter().flatten());
                inflation.extend(above.map(|(percentile, ns)| {
                    gauge(with(&attributes, "percentile", percentile.to_string().into()), ns)
                }));
            }
            for (sender, sent) in SENDERS.into_iter().zip(&pushed.traffic) {
                for (points, (_, read)) in traffic.iter_mut().zip(&metrics.traffic) {
                    let value = read(sent);
                    if value > 0 || temporality == Temporality::Cumulative {
                        points.push(Point {
                            attributes: with(&attributes, "sender", sender.into()),
                            since,
                            value,
                        });
                    }
                }
            }
            let has_samples = pushed.distribution.range.is_some();
            if temporality == Temporality::Delta {
                let ExportTotals { distribution, .. } = std::mem::replace(pushed, ExportTotals::new(at));
                rtts.extend(has_samples.then_some(Point { attributes, since, value: distribution }));
            } else if has_samples {
                rtts.push(Point { attributes, since, value: pushed.distribution.clone() });
            }
        }
        let columns = known
            .values()
            .filter(|known| !known.name.columns.is_empty() && labelled.is_labelled(&known.name.label))
            .map(|known| Point { attributes: columns(&known.name), since: at, value: 1 })
            .collect();
        let mut families = Vec::new();
        if self.kind == Kind::Group {
            families.push(self.queues.take(|group| self.labelled.is_labelled(group), temporality, at));
        }
        families.extend([
            Family { metric: &metrics.rtt, points: Points::Distributions(rtts) },
            Family { metric: &metrics.min_rtt, points: Points::Numbers(lowest) },
            Family { metric: &metrics.baseline, points: Points::Numbers(baselines) },
            Family { metric: &metrics.inflation, points: Points::Numbers(inflation) },
            Family { metric: &metrics.quality, points: Points::Numbers(quality) },
        ]);
        let traffic = metrics.traffic.iter().zip(traffic);
        families
            .extend(traffic.map(|((metric, _), points)| Family { metric, points: Points::Counts(points) }));
        families.push(Family { metric: &metrics.columns, points: Points::Levels(columns) });
        families
    }
}

fn with(attributes: &Attributes, name: &'static str, value: Arc<str>) -> Attributes {
    let mut attributes = attributes.clone();
    attributes.push((name.into(), value));
    attributes
}
