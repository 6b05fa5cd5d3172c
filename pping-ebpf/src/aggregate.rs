//! Adds samples and traffic to their series.

use pping_common::{
    abi::{Control, Counters, RttEvent, SeriesSelector},
    group::GroupKey,
    hash::SipKey,
    hist,
    parse::IpAddress,
    pool::BinBlock,
    series::{Purpose, Series, SeriesRef, Sums, Traffic, host_bit},
};

use crate::{
    barrier::barrier_var,
    bins, config,
    maps::{self, Admitted, SeriesTarget},
    shared::prelude::*,
    sync,
};

/// Adds a sample to its series. `reference` is the series reference of the timed flow direction.
#[inline(always)]
pub(crate) fn sample(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
    rtt: u64,
) {
    match series_of_flow(reference, selector, counters, target) {
        Some((series, buffer)) => add_sample(series, buffer, counters, target, rtt, hosts(selector)),
        None => target.index = RttEvent::NO_SERIES,
    }
}

/// Adds a sample that belongs to no flow to its series.
#[inline(always)]
pub(crate) fn sample_without_flow(
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
    rtt: u64,
) {
    match series_without_flow(selector, counters, target) {
        Some((series, buffer)) => add_sample(series, buffer, counters, target, rtt, hosts(selector)),
        None => target.index = RttEvent::NO_SERIES,
    }
}

/// Adds a sample to the series of the network at its other end. `reference` is that of the timed flow direction, if the sample
/// belongs to a flow.
#[inline(always)]
pub(crate) fn network_sample(
    reference: Option<Shared<SeriesRef>>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
    rtt: u64,
) {
    let Some((series, buffer)) = series_of_network(reference, selector, target) else { return };
    let hosts = set_of(selector.source);
    add_sample(series, buffer, counters, target, rtt, hosts);
}

/// Adds what two endpoints sent to the series of the network at the other end. `reference` is that of the timed flow direction.
#[inline(always)]
pub(crate) fn network_traffic(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    target: &mut SeriesTarget,
    (sent, received): (&Traffic, &Traffic),
) {
    let Some((series, _)) = series_of_network(Some(reference), selector, target) else { return };
    add_traffic(series, sent, received);
}

/// Returns the index of the series of queued packets, and how often that index was used before. Only groups that have
/// samples, or had some recently, have such a series, so that packets to unknown hosts take no room. All others share
/// the series of the group of others.
#[inline(always)]
pub(crate) fn of_queue(selector: &SeriesSelector, target: &mut SeriesTarget) -> Option<(u32, u32)> {
    let (control, ..) = control()?;
    let secret = control.at(field!(Control, secret)).load();
    write_key(control, selector, target);
    let mut index = maps::series_index(&target.key, secret);
    if index.is_none() && maps::groups().has(&target.key.group) {
        index = insert_series(control, target, secret);
    }
    if index.is_none() {
        index = others_series(GroupKey::OTHER, target, secret);
    }
    let index = index?;
    Some((index, generation(maps::series(index)?)))
}

/// Adds a time to the series of a queued packet, if the reference to it is still valid.
#[inline(always)]
pub(crate) fn add_to(reference: SeriesRef, counters: Shared<Counters>, target: &mut SeriesTarget, time: u64) {
    let Some(control) = maps::control() else { return };
    // The buffer is read before the generation, as for samples: a series is freed only two rotations after its generation ended.
    let buffer = control.at(field!(Control, rotations)).read();
    let Some(series) = maps::series(reference.index()) else { return };
    if reference.is_alive(generation(series)) {
        target.index = reference.index();
        let no_hosts = 0;
        add_sample(series, buffer, counters, target, time, no_hosts);
    }
}

/// Returns a set with only the host that replies; empty without groups, because hosts are counted for groups only.
#[inline(always)]
fn hosts(selector: &SeriesSelector) -> u64 {
    if config::grouping().is_on() { set_of(selector.source) } else { 0 }
}

/// Returns a set with only this host.
#[inline(always)]
fn set_of(host: IpAddress) -> u64 {
    let Some(control) = maps::control() else { return 0 };
    host_bit(host, control.at(field!(Control, secret)).load())
}

/// Counts a sample of `hosts` as a whole, or not at all.
#[inline(always)]
fn add_sample(
    series: Shared<Series>,
    buffer: u32,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
    value: u64,
    hosts: u64,
) {
    target.bin = hist::bin(value) as u32;
    target.hosts = hosts;
    barrier_var(target);
    let Some(block) = bins::block(series, buffer, target) else {
        counters.at(field!(Counters, unaggregated)).add(1);
        return;
    };
    block.at(field!(BinBlock, bins)).element(target.bin as usize).add(1);
    let known = block.at(field!(BinBlock, hosts));
    // Checked first: nearly all samples are of a host that is already in the set.
    if known.read() & target.hosts != target.hosts {
        sync::set_bits(known, target.hosts);
    }
    let sums = series.at(field!(Series, sums)).element(buffer as usize);
    sums.at(field!(Sums, sum)).add(value);
    let extremes = [(sums.at(field!(Sums, max)), value), (sums.at(field!(Sums, min_complement)), !value)];
    sync::raise(series.at(field!(Series, busy)), extremes);
}

/// Adds what two endpoints sent to a series. `reference` is the series reference of the timed flow direction.
#[inline(always)]
pub(crate) fn traffic(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
    (sent, received): (&Traffic, &Traffic),
) {
    let Some((series, _)) = series_of_flow(reference, selector, counters, target) else { return };
    add_traffic(series, sent, received);
}

#[inline(always)]
fn add_traffic(series: Shared<Series>, sent: &Traffic, received: &Traffic) {
    let traffic = series.at(field!(Series, traffic));
    add(traffic.element(0), sent);
    add(traffic.element(1), received);
}

#[inline(always)]
fn add(sum: Shared<Traffic>, traffic: &Traffic) {
    sum.at(field!(Traffic, packets)).add(traffic.packets);
    sum.at(field!(Traffic, bytes)).add(traffic.bytes);
    sum.at(field!(Traffic, retransmissions)).add(traffic.retransmissions);
    sum.at(field!(Traffic, ce)).add(traffic.ce);
}

/// Returns the series and the present buffer. The flow remembers the index, so only its first sample needs a hash.
#[inline(always)]
fn series_of_flow(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
) -> Option<(Shared<Series>, u32)> {
    let (control, buffer, epoch) = control()?;
    // The same as `SeriesSelector::purpose`. If that is called instead, Linux 6.18 verifies a third more instructions.
    let dscp = if config::grouping().by_dscp != 0 { selector.dscp } else { 0 };
    let purpose = Purpose::new(epoch, selector.method, selector.direction, dscp, selector.is_proved);
    if let Some(series) = known_series(reference, purpose, target) {
        return Some((series, buffer));
    }
    let series = find(control, selector, counters, target)?;
    reference.write(SeriesRef::new(target.index, generation(series), purpose));
    Some((series, buffer))
}

/// The series that a reference names, if it was made for this purpose and is still valid.
#[inline(always)]
fn known_series(
    reference: Shared<SeriesRef>,
    purpose: Purpose,
    target: &mut SeriesTarget,
) -> Option<Shared<Series>> {
    let known = reference.read();
    if !known.is_for(purpose) {
        return None;
    }
    let series = maps::series(known.index()).filter(|&series| known.is_alive(generation(series)))?;
    target.index = known.index();
    Some(series)
}

/// The same as [`series_of_flow`], for the network at the other end. Samples that belong to no flow have no reference.
#[inline(always)]
fn series_of_network(
    reference: Option<Shared<SeriesRef>>,
    selector: &SeriesSelector,
    target: &mut SeriesTarget,
) -> Option<(Shared<Series>, u32)> {
    let (control, buffer, epoch) = control()?;
    let purpose = Purpose::new(epoch, selector.method, selector.direction, 0, selector.is_proved);
    if let Some(reference) = reference
        && let Some(series) = known_series(reference, purpose, target)
    {
        return Some((series, buffer));
    }
    target.index = find_network(control, selector, target)?;
    barrier_var(target);
    let series = maps::series(target.index)?;
    if let Some(reference) = reference {
        reference.write(SeriesRef::new(target.index, generation(series), purpose));
    }
    Some((series, buffer))
}

/// Returns the index of the series of the network at the other end, which is inserted if there is room. If not, returns that of the
/// other networks.
#[inline(always)]
fn find_network(
    control: Shared<Control>,
    selector: &SeriesSelector,
    target: &mut SeriesTarget,
) -> Option<u32> {
    let secret = control.at(field!(Control, secret)).load();
    let labels = control.at(field!(Control, generation)).read();
    let label = |address| maps::label(labels, address);
    let key = &mut target.key;
    selector.write_network_key(key, config::grouping(), label, maps::is_listed_inside, maps::network);
    barrier_var(target);
    own_series(control, maps::networks(), selector.is_proved, target, secret)
        .or_else(|| others_series(GroupKey::OTHER_NETWORKS, target, secret))
}

/// Returns the series and the present buffer for a sample that belongs to no flow.
#[inline(always)]
fn series_without_flow(
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
) -> Option<(Shared<Series>, u32)> {
    let (control, buffer, _) = control()?;
    Some((find(control, selector, counters, target)?, buffer))
}

/// The control, its buffer and its epoch. The agent writes to it one number at a time.
#[inline(always)]
fn control() -> Option<(Shared<Control>, u32, u32)> {
    let control = maps::control()?;
    Some((control, control.at(field!(Control, rotations)).read(), control.at(field!(Control, epoch)).read()))
}

#[inline(always)]
fn generation(series: Shared<Series>) -> u32 {
    series.at(field!(Series, generation)).read()
}

/// Finds the series of a flow direction or a query, or inserts it.
#[inline(always)]
fn find(
    control: Shared<Control>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
) -> Option<Shared<Series>> {
    target.index = find_series(control, selector, counters, target)?;
    barrier_var(target);
    maps::series(target.index)
}

/// Returns the index of a series, which is inserted if there is room. If not, returns the index of the group of others.
#[inline(always)]
fn find_series(
    control: Shared<Control>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut SeriesTarget,
) -> Option<u32> {
    let secret = control.at(field!(Control, secret)).load();
    write_key(control, selector, target);
    let found = if config::grouping().is_on() {
        own_series(control, maps::groups(), selector.is_proved, target, secret).or_else(|| {
            counters.at(field!(Counters, groups_refused)).add(1);
            others_series(GroupKey::OTHER, target, secret)
        })
    } else {
        maps::series_index(&target.key, secret)
    };
    if found.is_none() {
        counters.at(field!(Counters, unaggregated)).add(1);
    }
    found
}

/// Returns the index of the series in `target`, which is inserted if there is room for its group.
#[inline(always)]
fn own_series(
    control: Shared<Control>,
    admitted: Admitted,
    is_proved: bool,
    target: &mut SeriesTarget,
    secret: SipKey,
) -> Option<u32> {
    if is_proved {
        admitted.prove(&target.key.group);
    }
    if let Some(index) = maps::series_index(&target.key, secret) {
        return Some(index);
    }
    if is_admitted(admitted, &target.key.group, is_proved) {
        insert_series(control, target, secret)
    } else {
        None
    }
}

/// Returns the index of the same series of all remaining groups. The agent inserts these series, and those without a group, before
/// it attaches the programs.
#[inline(always)]
fn others_series(others: GroupKey, target: &mut SeriesTarget, secret: SipKey) -> Option<u32> {
    target.key.group = others;
    barrier_var(target);
    maps::series_index(&target.key, secret)
}

/// Writes the key of a series. The current labels decide on its group.
#[inline(always)]
fn write_key(control: Shared<Control>, selector: &SeriesSelector, target: &mut SeriesTarget) {
    let generation = control.at(field!(Control, generation)).read();
    let label = |address| maps::label(generation, address);
    selector.write_key(&mut target.key, config::grouping(), label, maps::is_listed_inside);
    barrier_var(target);
}

/// Whether a group has its own series. Inserts the group if there is room.
#[inline(always)]
fn is_admitted(admitted: Admitted, group: &GroupKey, is_proved: bool) -> bool {
    if admitted.has(group) {
        return true;
    }
    if !is_proved && !admitted.insert_unproved(group) {
        return false;
    }
    let is_inserted = admitted.insert(group);
    if !is_proved && !is_inserted {
        admitted.prove(group);
    }
    is_inserted
}

/// Gives a new series an index, and inserts it. The maps read key and index from `target`. On the stack, these would
/// make the verifier tell states apart by what was there before.
#[inline(always)]
fn insert_series(control: Shared<Control>, target: &mut SeriesTarget, secret: SipKey) -> Option<u32> {
    target.index = match maps::take_free_series() {
        Some(index) => index,
        None => take_unused_index(control)?,
    };
    let series = maps::series(target.index)?;
    // No other program can find the series yet.
    series.at(field!(Series, key)).store(&target.key);
    if maps::insert_series(&target.key, secret, &target.index) {
        sync::publish(series.at(field!(Series, used)), 1);
        return Some(target.index);
    }
    // Another CPU inserted it first.
    maps::give_free_series(&target.index);
    maps::series_index(&target.key, secret)
}

/// Takes the next index that was never used.
#[inline(always)]
fn take_unused_index(control: Shared<Control>) -> Option<u32> {
    let unused = control.at(field!(Control, unused));
    // Checked first, so that the counter does not grow without end.
    if unused.read() >= config::max_series() {
        return None;
    }
    let index = sync::fetch_add_1(unused)?;
    (index < config::max_series()).then_some(index)
}
