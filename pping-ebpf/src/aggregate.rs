//! Adding samples and traffic to their series.

use pping_common::{
    abi::{
        Control, Counters, Purpose, RttEvent, Series, SeriesKey, SeriesRef, SeriesSelector, Tally, Traffic,
    },
    flow::{Endpoint, Flow},
    group::GroupKey,
    hist::{self, BINS},
};

use crate::{
    bounds, config,
    launder::{launder, launder_index},
    maps::{self, Target},
    shared::{Shared, field},
    sync,
};

/// Adds a sample of a packet that `timed` sent.
#[inline(always)]
pub(crate) fn sample(
    flow: *mut Flow,
    timed: Endpoint,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
    rtt: u64,
) {
    match tally(flow, timed, selector, counters, target) {
        Some((series, tally)) => take(series, tally, target, rtt),
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
    match tally_without_flow(selector, counters, target) {
        Some((series, tally)) => take(series, tally, target, rtt),
        None => target.index = RttEvent::NO_SERIES,
    }
}

#[inline(always)]
fn take(series: *mut Series, tally: *mut Tally, target: &mut Target, rtt: u64) {
    target.bin = hist::bin(rtt) as u32;
    launder(target);
    let bin = launder_index(target.bin as usize);
    // SAFETY: a map value, valid for the program's run, of which no references are made: other CPUs write to it too.
    let (sum, max, min_complement, bins) = unsafe {
        (
            &raw mut (*tally).sum,
            &raw mut (*tally).max,
            &raw mut (*tally).min_complement,
            (&raw mut (*tally).bins).cast::<u32>(),
        )
    };
    if bin < BINS {
        // SAFETY: as above, and inside the array.
        sync::add_32(unsafe { bins.add(bin) }, 1);
    }
    sync::add(sum, rtt);
    sync::raise(series, [(max, rtt), (min_complement, !rtt)]);
}

/// Adds the traffic of both endpoints to the series of `timed`.
#[inline(always)]
pub(crate) fn traffic(
    flow: *mut Flow,
    timed: Endpoint,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
    (sent, received): (&Traffic, &Traffic),
) {
    let Some((_, tally)) = tally(flow, timed, selector, counters, target) else { return };
    // SAFETY: as above.
    let (to, from) = unsafe { (&raw mut (*tally).sent, &raw mut (*tally).received) };
    add(to, sent);
    add(from, received);
}

#[inline(always)]
fn add(sum: *mut Traffic, traffic: &Traffic) {
    // SAFETY: part of a map value, valid for the program's run.
    let (packets, bytes, retransmissions, ce) = unsafe {
        (&raw mut (*sum).packets, &raw mut (*sum).bytes, &raw mut (*sum).retransmissions, &raw mut (*sum).ce)
    };
    sync::add(packets, traffic.packets);
    sync::add(bytes, traffic.bytes);
    sync::add(retransmissions, traffic.retransmissions);
    sync::add(ce, traffic.ce);
}

/// The series with its present tally. The flow remembers the index, so all but the first sample find it without hashing.
#[inline(always)]
fn tally(
    flow: *mut Flow,
    timed: Endpoint,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<(*mut Series, *mut Tally)> {
    let (control, phase, epoch) = control()?;
    // The same as `SeriesSelector::purpose`. If that is called, 6.18 verifies a third more instructions.
    let dscp = if config::grouping().by_dscp != 0 { selector.dscp } else { 0 };
    let purpose = Purpose::new(epoch, selector.method, selector.direction, dscp);
    // SAFETY: a map value, valid for the program's run. One number, so never half of one and half of another.
    let reference = unsafe {
        match timed {
            Endpoint::Low => &raw mut (*flow).low.series,
            Endpoint::High => &raw mut (*flow).high.series,
        }
    };
    // SAFETY: as above.
    let known = unsafe { reference.read_volatile() };
    if known.is_for(purpose)
        && let Some(series) = maps::series(known.index()).filter(|&series| known.is_alive(life(series)))
    {
        target.index = known.index();
        return Some((series, tally_of(series, phase)));
    }
    let series = find(control, selector, counters, target)?;
    // SAFETY: as above.
    unsafe { reference.write_volatile(SeriesRef::new(target.index, life(series), purpose)) };
    Some((series, tally_of(series, phase)))
}

/// The same without a flow.
#[inline(always)]
fn tally_without_flow(
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<(*mut Series, *mut Tally)> {
    let (control, phase, _) = control()?;
    let series = find(control, selector, counters, target)?;
    Some((series, tally_of(series, phase)))
}

/// The control, its phase and its epoch.
#[inline(always)]
fn control() -> Option<(*mut Control, u32, u32)> {
    let control = maps::control()?;
    // SAFETY: a map value, valid for the program's run. The agent writes to it one number at a time.
    let (phase, epoch) = unsafe {
        ((&raw const (*control).phase).read_volatile(), (&raw const (*control).epoch).read_volatile())
    };
    Some((control, phase, epoch))
}

/// The present tally of a series.
#[inline(always)]
fn tally_of(series: *mut Series, phase: u32) -> *mut Tally {
    // SAFETY: a map value, valid for the program's run, and inside the array.
    unsafe { (&raw mut (*series).tallies).cast::<Tally>().add(bounds::within::<2>(phase as usize)) }
}

#[inline(always)]
fn life(series: *mut Series) -> u32 {
    // SAFETY: a map value, valid for the program's run.
    unsafe { (&raw const (*series).life).read_volatile() }
}

/// The series of a flow direction or a query.
#[inline(always)]
fn find(
    control: *mut Control,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    target: &mut Target,
) -> Option<*mut Series> {
    target.index = find_series(control, selector, counters, &mut target.key)?;
    launder(target);
    maps::series(target.index)
}

/// The index of a series, which is inserted if there is room; else that of the group of others.
#[inline(always)]
fn find_series(
    control: *mut Control,
    selector: &SeriesSelector,
    counters: Shared<Counters>,
    key: &mut SeriesKey,
) -> Option<u32> {
    // SAFETY: a map value, valid for the program's run.
    let generation = unsafe { (&raw const (*control).generation).read_volatile() };
    let grouping = config::grouping();
    selector.write_key(key, grouping, |address| maps::label(generation, address));
    launder(key);
    if let Some(index) = maps::series_index(key) {
        return Some(index);
    }
    if grouping.is_on() {
        if is_admitted(&key.group)
            && let Some(index) = make(control, key)
        {
            return Some(index);
        }
        sync::add(counters.at(field!(Counters, groups_refused)).as_ptr(), 1);
        key.group = GroupKey::OTHER;
        launder(key);
        if let Some(index) = maps::series_index(key) {
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
    // SAFETY: only whether there is an entry matters; its value is not read.
    maps::has_group(group) || maps::insert_group(group)
}

/// Gives a series an index.
#[inline(always)]
fn make(control: *mut Control, key: &SeriesKey) -> Option<u32> {
    let index = match maps::take_free_series() {
        Some(index) => index,
        None => unused(control)?,
    };
    let series = maps::series(index)?;
    // SAFETY: a map value, valid for the program's run, and no other program finds it yet.
    let used = unsafe {
        (&raw mut (*series).key).write(*key);
        &raw mut (*series).used
    };
    if maps::insert_series(key, index) {
        sync::publish(used, 1);
        return Some(index);
    }
    // Another CPU inserted it first.
    maps::give_free_series(index);
    maps::series_index(key)
}

/// The next index that was never used.
#[inline(always)]
fn unused(control: *mut Control) -> Option<u32> {
    // SAFETY: a map value, valid for the program's run.
    let unused = unsafe { &raw mut (*control).unused };
    // SAFETY: as above. Looked at first, so that it does not count up for ever.
    if unsafe { unused.read_volatile() } >= config::max_series() {
        return None;
    }
    let index = sync::fetch_add_1(unused)?;
    (index < config::max_series()).then_some(index)
}
