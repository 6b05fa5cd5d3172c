//! Both sides of a group: for each the series of one interface, and of those the methods that time the same thing.

use std::{collections::BTreeMap, sync::Arc};

use pping_common::{group::Side, method::Method, parse::Direction, series::Traffic};

use super::{
    super::{
        figures::{RttAnswer, TrafficAnswer},
        history::{CELLS, History},
        order::SeriesQuery,
        sides::{SideAnswer, SidesAnswer},
    },
    Group, Key, Model,
};
use crate::{aggregate::Measurements, quality::scores_of};

/// What methods of a side time. Samples of methods that time the same thing are one distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    /// The path and the host's TCP.
    Tcp,
    /// The path and the host's ICMP.
    Echo,
    /// The path and a QUIC server's handshake.
    QuicHandshake,
}

impl Timed {
    const ALL: [Self; 3] = [Self::Tcp, Self::Echo, Self::QuicHandshake];

    /// What a method times; `None` if its RTTs are not those of the path. Resolvers ask other servers, and the pauses of an
    /// application lengthen the RTTs of spin bits.
    const fn by(method: Method) -> Option<Self> {
        match method {
            Method::TcpTs | Method::TcpSeq | Method::TcpHandshake => Some(Self::Tcp),
            Method::IcmpEcho => Some(Self::Echo),
            Method::QuicHandshake => Some(Self::QuicHandshake),
            Method::Dns | Method::QuicSpin => None,
        }
    }
}

/// A series of a side.
struct OfSide<'a> {
    method: Method,
    history: &'a History,
    /// The last minute.
    recent: Measurements,
}

/// The series of a side at one interface, with echoes in one direction.
struct Place<'a> {
    interface: &'a Option<Arc<str>>,
    matched: Option<Direction>,
    series: Vec<OfSide<'a>>,
}

impl<'a> Place<'a> {
    /// Returns the series that time the same thing.
    fn that_time(&self, timed: Timed) -> impl Iterator<Item = &OfSide<'a>> {
        self.series.iter().filter(move |it| Timed::by(it.method) == Some(timed))
    }

    /// Returns the number of samples in the last minute, and in the last 15.
    fn samples(&self, timed: Timed) -> (u64, u64) {
        let samples = self.that_time(timed).map(|it| (it.recent.count(), it.history.count()));
        samples.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    }

    /// Returns what the RTTs of the place time: TCP if it has samples, or else what has most.
    fn timed(&self) -> Option<Timed> {
        let has_samples = |samples: &(u64, u64)| samples.1 > 0;
        // Samples of the last minute first: the older ones are only for the trend.
        let rank = |timed: &Timed| {
            let samples @ (recent, _) = self.samples(*timed);
            (recent > 0, *timed == Timed::Tcp, samples)
        };
        Timed::ALL.into_iter().filter(|it| has_samples(&self.samples(*it))).max_by_key(rank)
    }

    /// Returns the place's rank among those of its side: where the side is beyond the interface, and then the busiest. A place
    /// without RTTs of the last minute comes after those that have some.
    fn rank(&self) -> (bool, bool, u64, u64) {
        let (recent, all) = self.timed().map_or((0, 0), |timed| self.samples(timed));
        let packets = self.series.iter().flat_map(|it| &it.recent.traffic).map(|it| it.packets);
        (recent > 0, self.matched == Some(Direction::Ingress), all, packets.sum())
    }
}

impl Model {
    /// Returns both sides of a group, by the series that are asked for, without their trends.
    pub(super) fn sides(&self, group: &Group, query: &SeriesQuery) -> SidesAnswer {
        let [inside, outside] = Side::ALL.map(|side| {
            let of_side = |key: &Key| key.side == Some(side) && key.is_asked_for(query);
            self.side(group.series.iter().filter(|(key, _)| of_side(key)))
        });
        let both = || [&inside, &outside].into_iter().flatten();
        let traffic = both().map(|side| sum(side.sent, side.received)).max_by_key(|sum| sum.packets);
        let lowest = |name: &Arc<str>| both().filter_map(|side| *side.quality.get(name)?).min();
        let names = self.profiles.iter().map(|profile| &profile.name);
        let quality = names.map(|name| (Arc::clone(name), lowest(name))).collect();
        SidesAnswer { traffic: traffic.unwrap_or_default(), quality, inside, outside }
    }

    /// Returns a side, if it has any series.
    fn side<'a>(&self, series: impl Iterator<Item = (&'a Key, &'a History)>) -> Option<SideAnswer> {
        let mut places = BTreeMap::new();
        for (key, history) in series {
            let Key { interface, matched, method, .. } = key;
            let empty = Place { interface, matched: *matched, series: Vec::new() };
            let place = places.entry((interface, *matched)).or_insert(empty);
            place.series.push(OfSide { method: *method, history, recent: history.recent(self.number()) });
        }
        // The same packets may pass several interfaces, so these are never added.
        let place = places.into_values().max_by_key(Place::rank)?;
        let mut all = [Traffic::default(); 2];
        for OfSide { recent, .. } in &place.series {
            all.iter_mut().zip(&recent.traffic).for_each(|(sum, traffic)| sum.add(traffic));
        }
        let [sent, received] = all.map(TrafficAnswer::from);
        let mut joined = Measurements::default();
        let mut methods = Vec::new();
        for OfSide { method, history, recent } in place.timed().iter().flat_map(|it| place.that_time(*it)) {
            joined.merge(recent);
            if history.count() > 0 {
                methods.push(*method);
            }
        }
        methods.sort_unstable();
        Some(SideAnswer {
            interface: place.interface.clone(),
            matched: place.matched.map(|direction| direction.name().into()),
            rtt: joined.rtts().map(RttAnswer::from),
            sent,
            received,
            // Of methods that are joined, each gives the same score.
            quality: scores_of(&joined, methods.first().copied().unwrap_or(Method::TcpTs), &self.profiles),
            methods: methods.into_iter().map(|method| method.name().into()).collect(),
            trend: Vec::new(),
        })
    }

    /// Adds the trends of both sides of a group.
    pub(super) fn add_trends(&self, group: &Group, sides: &mut SidesAnswer) {
        let SidesAnswer { inside, outside, .. } = sides;
        for (side, answer) in Side::ALL.into_iter().zip([inside, outside]) {
            let Some(answer) = answer else { continue };
            let is_part = |key: &Key| {
                key.side == Some(side)
                    && key.interface == answer.interface
                    && key.matched.map(Direction::name) == answer.matched.as_deref()
                    && answer.methods.iter().any(|name| name == key.method.name())
            };
            let histories = group.series.iter().filter(|(key, _)| is_part(key)).map(|(_, history)| history);
            let histories: Vec<_> = histories.collect();
            answer.trend = self.trend(&histories);
        }
    }

    /// Returns the 95th percentile of each cell of the last 15 minutes, ns, over all these series.
    fn trend(&self, histories: &[&History]) -> Vec<Option<u64>> {
        let first = (self.number() + 1).saturating_sub(CELLS);
        let mut cells = vec![Measurements::default(); CELLS as usize];
        for cell in histories.iter().flat_map(|history| history.cells()) {
            let at = cell.number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            if let Some(sum) = at.and_then(|at| cells.get_mut(at)) {
                sum.merge(&cell.measured);
            }
        }
        cells.iter().map(|cell| cell.rtts().map(|rtts| rtts.percentiles[2])).collect()
    }
}

/// Returns the traffic of both flow directions.
fn sum(sent: TrafficAnswer, received: TrafficAnswer) -> TrafficAnswer {
    TrafficAnswer {
        packets: sent.packets + received.packets,
        bytes: sent.bytes + received.bytes,
        retransmissions: sent.retransmissions + received.retransmissions,
    }
}
