//! What is kept, by days and by size, and a disk that is full.

use super::*;

#[test]
fn the_oldest_go_by_days_and_by_size() {
    let directory = directory();
    let settings = |disk, days: u64| Settings {
        directory: directory.path().to_owned(),
        limits: HistoryLimits {
            disk,
            keep: HistoryKeep([1, 2, days].map(|days| Duration::from_secs(days * DAY))),
        },
    };
    let mut numbers = Numbers(5);
    let write = |settings, days: &[u64], numbers: &mut Numbers| {
        let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::default());
        for day in days {
            writer.take(&minute(MIDNIGHT + day * DAY, &second(numbers)));
        }
    };
    let days = |tier| -> Vec<u64> {
        let pieces = Store::open(directory.path()).unwrap().pieces(tier).unwrap();
        pieces.iter().map(|piece| (piece.start - MIDNIGHT) / DAY).collect()
    };
    write(settings(1 << 30, 5), &[0, 1, 2, 3, 4], &mut numbers);
    // The last day is still in its minutes.
    assert_eq!(
        (days(Tier::Minute), days(Tier::FiveMinutes), days(Tier::Hour)),
        (vec![3, 4], vec![2, 3], vec![0, 1, 2, 3])
    );
    // A clock that is wrong for a minute, by years, removes nothing.
    write(settings(1 << 30, 5), &[4000, 5], &mut numbers);
    assert!(days(Tier::Hour).starts_with(&[0, 1, 2, 3, 4]), "{:?}", days(Tier::Hour));
    // With hardly any room only the present hour is left.
    write(settings(1, 5), &[6], &mut numbers);
    assert_eq!((days(Tier::FiveMinutes), days(Tier::Hour)), (vec![], vec![]));
    assert_eq!(days(Tier::Minute), [6]);
}

#[test]
fn a_full_disk_costs_minutes_and_never_what_is_kept() {
    let run = |directory: &Path| {
        let history = directory.join("history");
        let ballast = directory.join("ballast");
        let (state, mut numbers) = (Arc::<State>::default(), Numbers(17));
        let settings = Settings { directory: history.clone(), limits: LIMITS };
        let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::clone(&state));
        let mut expected = Stored::new();
        let mut refused = 0;
        // Each hour has another amount of room left when it is merged: too little for one file more, for two, for three.
        for number in 0..40_u64 {
            let start = MIDNIGHT + number * 1800;
            fs::remove_file(&ballast).ok();
            if number % 2 == 0 {
                fs::write(&ballast, vec![0; 4096]).unwrap();
                let mut fill = fs::File::options().append(true).open(&ballast).unwrap();
                while std::io::Write::write_all(&mut fill, &[0; 4096]).is_ok() {}
                let left = fs::metadata(&ballast).unwrap().len().saturating_sub(4096 * (number / 2));
                fill.set_len(left).unwrap();
            }
            let slices = second(&mut numbers);
            let before = state.rows.load(Ordering::Relaxed);
            writer.take(&minute(start, &slices));
            if state.rows.load(Ordering::Relaxed) == before {
                refused += 1;
                continue;
            }
            for (name, counts) in &slices {
                let key = (name.group.label.to_string(), name.method, start - start % 3600);
                expected.entry(key).or_default().add(counts);
            }
            assert_eq!(stored(&history, Tier::Hour, MIDNIGHT, MIDNIGHT + 2 * DAY), expected, "{number}");
        }
        assert!(refused > 0 && refused < 20, "{refused} minutes were refused");
        fs::remove_file(&ballast).ok();
        writer.take(&minute(MIDNIGHT + 3 * DAY, &[]));
        assert_eq!(stored(&history, Tier::Hour, MIDNIGHT, MIDNIGHT + 2 * DAY), expected);
        let minutes = Store::open(&history).unwrap().pieces(Tier::Minute).unwrap();
        assert!(minutes.iter().filter(|piece| piece.end() - piece.start == 60).count() <= 1, "{minutes:?}");
    };
    pping_lab::on_small_disk(2048, run).unwrap();
}

#[test]
fn a_wrong_clock_makes_no_day_old() {
    let directory = directory();
    let keep = HistoryKeep([Duration::from_secs(DAY); 3]);
    let settings =
        Settings { directory: directory.path().to_owned(), limits: HistoryLimits { keep, ..LIMITS } };
    let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::default());
    let mut numbers = Numbers(29);
    let (noon, future) = (MIDNIGHT + DAY / 2, 2_147_483_640 / 60 * 60);
    for start in [noon, future, noon + DAY, noon + DAY + 3600] {
        writer.take(&minute(start, &second(&mut numbers)));
    }
    // The day before is kept, whatever the clock said meanwhile.
    assert!(!stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY).is_empty());
    writer.take(&minute(noon + 2 * DAY, &[]));
    assert!(stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY).is_empty());
    assert!(!stored(directory.path(), Tier::Hour, MIDNIGHT + DAY, MIDNIGHT + 2 * DAY).is_empty());
}

#[test]
fn a_history_never_fills_its_disk() {
    let run = |directory: &Path| {
        let history = directory.join("history");
        let (state, mut numbers) = (Arc::<State>::default(), Numbers(31));
        // The limit is far beyond what the disk has.
        let keep = HistoryKeep([Duration::from_secs(60 * DAY); 3]);
        let settings = Settings { directory: history.clone(), limits: HistoryLimits { keep, ..LIMITS } };
        let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::clone(&state));
        let mut rows = 0;
        for number in 0..24 * 7 {
            let slices = second(&mut numbers);
            rows += minute(0, &slices).series.len() as u64;
            writer.take(&minute(MIDNIGHT + number * 3600, &slices));
            let free = Store::open(&history).unwrap().free_room().unwrap();
            assert!(free > 50 << 10, "{free} bytes are free at hour {number}");
        }
        assert_eq!((state.rows.load(Ordering::Relaxed), state.lost_rows.load(Ordering::Relaxed)), (rows, 0));
        let of_tier = |tier| Store::open(&history).unwrap().pieces(tier).unwrap();
        // Hours stay, and of the others the newest.
        assert_eq!(of_tier(Tier::Hour).first().map(|piece| piece.start), Some(MIDNIGHT));
        assert!(of_tier(Tier::Minute).first().is_some_and(|piece| piece.start > MIDNIGHT + DAY));
        // Another program fills the disk, and pping makes room for its minutes.
        let mut ballast = fs::File::create(directory.join("ballast")).unwrap();
        while std::io::Write::write_all(&mut ballast, &[0; 4096]).is_ok() {}
        for number in 24 * 7..24 * 7 + 6 {
            writer.take(&minute(MIDNIGHT + number * 3600, &second(&mut numbers)));
        }
        let written = state.rows.load(Ordering::Relaxed);
        writer.take(&minute(MIDNIGHT + (24 * 7 + 6) * 3600, &second(&mut numbers)));
        assert!(state.rows.load(Ordering::Relaxed) > written);
    };
    pping_lab::on_small_disk(1024, run).unwrap();
}
