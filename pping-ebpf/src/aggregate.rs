//! Adding samples and traffic to their series.

use pping_common::{
    abi::{Control, Counters, Purpose, RttEvent, Series, SeriesRef, SeriesSelector, Sums, Traffic},
    group::GroupKey,
    hist,
};

use crate::{
    bins, config,
    launder::launder,
    maps::{self, Target},
    shared::{Shared, field},
    sync,
};

/// Adds a sample to a series. `reference` is what the flow direction whose packets are timed knows of that.
#[inline(always)]
pub(crate) fn sample(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
    rtt: u64,
) {
    match known(reference, selector, counters, target) {
        Some((series, phase)) => take(series, phase, counters, target, rtt),
        None => target.index = RttEvent::NO_SERIES,
    }
}

/// The same without a flow.
#[inline(always)]
pub(crate) fn sample_without_flow(
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
    rtt: u64,
) {
    match without_flow(selector, counters, target) {
        Some((series, phase)) => take(series, phase, counters, target, rtt),
        None => target.index = RttEvent::NO_SERIES,
    }
}

/// Counts a sample as a whole, or not at all.
#[inline(always)]
fn take(series: Shared<Series>, phase: u32, counters: Shared<Counters>, target: &mut Target, rtt: u64) {
    target.bin = hist::bin(rtt) as u32;
    launder(target);
    let Some(count) = bins::count(series, phase, target) else {
        counters.at(field!(Counters, unaggregated)).add(1);
        return;
    };
    count.add(1);
    let sums = series.at(field!(Series, sums)).element(phase as usize);
    sums.at(field!(Sums, sum)).add(rtt);
    let extremes = [(sums.at(field!(Sums, max)), rtt), (sums.at(field!(Sums, min_complement)), !rtt)];
    sync::raise(series.at(field!(Series, busy)), extremes);
}

/// Adds what two endpoints sent to a series. `reference` is what the flow direction whose packets are timed knows of that.
#[inline(always)]
pub(crate) fn traffic(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
    (sent, received): (&Traffic, &Traffic),
) {
    let Some((series, _)) = known(reference, selector, counters, target) else { return };
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

/// The series and the present phase. The flow remembers the index, so all but the first sample find it without hashing.
#[inline(always)]
fn known(
    reference: Shared<SeriesRef>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<(Shared<Series>, u32)> {
    let (control, phase, epoch) = control()?;
    // The same as `SeriesSelector::purpose`. If that is called, 6.18 verifies a third more instructions.
    let dscp = if config::grouping().by_dscp != 0 { selector.dscp } else { 0 };
    let purpose = Purpose::new(epoch, selector.method, selector.direction, dscp);
    let known = reference.read();
    if known.is_for(purpose)
        && let Some(series) = maps::series(known.index()).filter(|&series| known.is_alive(life(series)))
    {
        target.index = known.index();
        return Some((series, phase));
    }
    let series = find(control, selector, counters, target)?;
    reference.write(SeriesRef::new(target.index, life(series), purpose));
    Some((series, phase))
}

/// The same without a flow.
#[inline(always)]
fn without_flow(
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<(Shared<Series>, u32)> {
    let (control, phase, _) = control()?;
    Some((find(control, selector, counters, target)?, phase))
}

/// The control, its phase and its epoch. The agent writes to it one number at a time.
#[inline(always)]
fn control() -> Option<(Shared<Control>, u32, u32)> {
    let control = maps::control()?;
    Some((control, control.at(field!(Control, phase)).read(), control.at(field!(Control, epoch)).read()))
}

#[inline(always)]
fn life(series: Shared<Series>) -> u32 {
    series.at(field!(Series, life)).read()
}

/// The series of a flow direction or a query.
#[inline(always)]
fn find(
    control: Shared<Control>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<Shared<Series>> {
    target.index = find_series(control, selector, counters, target)?;
    launder(target);
    maps::series(target.index)
}

/// The index of a series, which is inserted if there is room; else that of the group of others.
#[inline(always)]
fn find_series(
    control: Shared<Control>,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<u32> {
    let generation = control.at(field!(Control, generation)).read();
    let seed = control.at(field!(Control, seed)).read();
    let grouping = config::grouping();
    selector.write_key(&mut target.key, grouping, |address| maps::label(generation, address));
    launder(target);
    if let Some(index) = maps::series_index(&target.key, seed) {
        return Some(index);
    }
    if grouping.is_on() {
        if is_admitted(&target.key.group)
            && let Some(index) = make(control, target, seed)
        {
            return Some(index);
        }
        sync::add(counters.at(field!(Counters, groups_refused)).as_ptr(), 1);
        target.key.group = GroupKey::OTHER;
        launder(target);
        if let Some(index) = maps::series_index(&target.key, seed) {
            return Some(index);
        }
    }
    // The agent inserts the series without a group, and those of the group of others, before it attaches the programs.
    sync::add(counters.at(field!(Counters, unaggregated)).as_ptr(), 1);
    None
}

/// Whether a group has series of its own; enters it if there is room.
#[inline(always)]
fn is_admitted(group: &GroupKey) -> bool {
    maps::has_group(group) || maps::insert_group(group)
}

/// Gives a series an index. It goes to the maps from `target`: what is on the stack would have the verifier tell states apart by
/// what was there before.
#[inline(always)]
fn make(control: Shared<Control>, target: &mut Target, seed: u64) -> Option<u32> {
    target.index = match maps::take_free_series() {
        Some(index) => index,
        None => unused(control)?,
    };
    let series = maps::series(target.index)?;
    // No other program finds it yet.
    series.at(field!(Series, key)).store(&target.key);
    if maps::insert_series(&target.key, seed, &target.index) {
        sync::publish(series.at(field!(Series, used)).as_ptr(), 1);
        return Some(target.index);
    }
    // Another CPU inserted it first.
    maps::give_free_series(&target.index);
    maps::series_index(&target.key, seed)
}

/// The next index that was never used.
#[inline(always)]
fn unused(control: Shared<Control>) -> Option<u32> {
    let unused = control.at(field!(Control, unused));
    // Looked at first, so that it does not count up for ever.
    if unused.read() >= config::max_series() {
        return None;
    }
    let index = sync::fetch_add_1(unused.as_ptr())?;
    (index < config::max_series()).then_some(index)
}
