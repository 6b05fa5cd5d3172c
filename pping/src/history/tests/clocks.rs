//! Clocks that are wrong, and names that change.

use super::*;

#[test]
fn a_clock_that_goes_back_loses_nothing() {
    let directory = directory();
    let (mut writer, mut numbers) = (writer(directory.path()), Numbers(11));
    let mut expected = Stored::new();
    // Three hours, and then two of them again.
    for number in (0..180).chain(60..180) {
        let start = MIDNIGHT + 60 * number;
        let slices = second(&mut numbers);
        for (name, counts) in &slices {
            let key = (name.group.label.to_string(), name.method, start - start % 3600);
            expected.entry(key).or_default().add(counts);
        }
        writer.take(&minute(start, &slices));
    }
    assert_eq!(stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY), expected);
    writer.take(&minute(MIDNIGHT + DAY, &[]));
    assert_eq!(stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY), expected);
}

#[test]
fn a_clock_that_was_wrong_by_years_costs_nothing_else() {
    let directory = directory();
    let (mut writer, mut numbers) = (writer(directory.path()), Numbers(13));
    let times = [MIDNIGHT, 60, 2_147_483_640 / 60 * 60, MIDNIGHT + DAY];
    let mut expected = Vec::new();
    for start in times {
        // The last minute of each run ends an hour and a day.
        let slices = second(&mut numbers);
        writer.take(&minute(start, &slices));
        writer.take(&minute(start + 60, &[]));
        expected.push(slices.len());
    }
    for (start, rows) in times.into_iter().zip(expected) {
        assert_eq!(stored(directory.path(), Tier::Hour, start, start + 3600).len(), rows, "{start}");
    }
    let said = inspect::check(directory.path(), MIDNIGHT + 2 * DAY).unwrap();
    assert_eq!(said.matches("1 of the future: the clock of this host was wrong").count(), 3, "{said}");
    assert!(said.contains("no file is damaged"), "{said}");
}

#[test]
fn a_group_that_returns_or_has_another_name_keeps_its_past() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let slice = |group: u64| {
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(20_000_000, 0);
        vec![(name(group, Method::TcpTs, None), counts)]
    };
    let month = 30 * DAY;
    // The customer is there, is away for a month, returns, and is renamed.
    for (time, group) in [(0, 1), (month, 1), (month + 60, 1), (month + 120, 2)] {
        writer.take(&minute(MIDNIGHT + time, &slice(group)));
    }
    writer.take(&minute(MIDNIGHT + month + DAY, &[]));
    let archive = Archive::new(directory.path().to_owned());
    let samples = |group: &str| {
        let asked = asked(MIDNIGHT, MIDNIGHT + month + DAY, 3600);
        let answer = archive.history(&Asked { group: Some(group.to_owned()), ..asked }).unwrap();
        let cells = answer.series.iter().flat_map(|series| &series.cells);
        cells.filter_map(|cell| Some(cell.rtt?.count)).collect::<Vec<_>>()
    };
    assert_eq!(samples("customer-1"), [1, 2]);
    assert_eq!(samples("customer-2"), [1]);
}

#[test]
fn a_stray_file_hides_no_other_tier() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let mut numbers = Numbers(37);
    // A minute of 1970, and then two days of which the minutes of the first are gone.
    for start in [60, MIDNIGHT, MIDNIGHT + DAY, MIDNIGHT + DAY + 3600] {
        let slices: Vec<_> = (0..9).flat_map(|_| second(&mut numbers)).collect();
        writer.take(&minute(start, &slices));
    }
    fs::remove_dir_all(directory.path().join("1m/2026-11-26")).unwrap();
    let archive = Archive::new(directory.path().to_owned());
    let cell = |from, to| archive.history(&asked(from, to, 60)).unwrap();
    let both = cell(MIDNIGHT, MIDNIGHT + 2 * DAY);
    assert_eq!(both.cell, 300 * 1_000_000_000);
    assert!(
        both.series
            .iter()
            .all(|series| series.cells.iter().any(|it| it.time < (MIDNIGHT + 60) * 1_000_000_000))
    );
    assert_eq!(cell(MIDNIGHT + DAY, MIDNIGHT + 2 * DAY).cell, 60 * 1_000_000_000);
}

#[test]
fn a_short_range_is_answered_by_the_interval_it_is_in() {
    let directory = directory();
    write_hours(directory.path());
    fs::remove_dir_all(directory.path().join("1m")).unwrap();
    fs::remove_dir_all(directory.path().join("5m")).unwrap();
    let archive = Archive::new(directory.path().to_owned());
    let answer = archive.history(&asked(MIDNIGHT + 1800, MIDNIGHT + 1860, 60)).unwrap();
    assert_eq!((answer.cell, answer.series.is_empty()), (3600 * 1_000_000_000, false));
}
