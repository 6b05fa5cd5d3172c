//! Files and directories that somebody damaged, and such that are none.

use rustix::fs::{FileType, Mode};

use super::{super::read::StoredFile, *};

#[test]
fn a_damaged_file_is_named_and_left_out_and_nothing_panics() {
    let directory = directory();
    write_hours(directory.path());
    let path = directory.path().join("1h/2026-11-26/00.parquet");
    let whole = fs::read(&path).unwrap();
    let archive = Archive::new(directory.path().to_owned());
    let question = asked(MIDNIGHT, MIDNIGHT + 3600, 3600);
    let rows = |archive: &Archive| archive.history(&question).unwrap().series.len();
    assert!(rows(&archive) > 0);
    let mut numbers = Numbers(3);
    for round in 0..400 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(numbers.below(whole.len() as u64) as usize),
            1 => {
                let first = numbers.below(whole.len() as u64) as usize;
                let end = (first + 1 + numbers.below(64) as usize).min(whole.len());
                bytes[first..end].fill(0);
            }
            _ => {
                let at = numbers.below(whole.len() as u64) as usize;
                bytes[at] ^= 1 << numbers.below(8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let answer = archive.history(&question).unwrap();
        // Cut files are always noticed. A flipped bit may be in a place that nothing reads.
        assert!(round % 3 > 0 || answer.damaged.len() == 1, "{round}");
    }
    fs::write(&path, b"").unwrap();
    let said = command_output(&["check"], directory.path());
    assert!(said.contains("1h/2026-11-26/00.parquet is damaged"), "{said}");
    // A file of another hour.
    let other = directory.path().join("1h/2026-11-26/05.parquet");
    fs::write(&other, &whole).unwrap();
    let said = command_output(&["check"], directory.path());
    assert!(said.contains("05.parquet is damaged: its rows are of another time"), "{said}");
    // The upkeep of the next day sets both aside, and goes on.
    let mut writer = writer(directory.path());
    writer.take(&minute(MIDNIGHT + DAY, &[]));
    assert!(path.with_added_extension("damaged").exists() && other.with_added_extension("damaged").exists());
    assert!(command_output(&["check"], directory.path()).ends_with("no file is damaged\n"));
}

#[test]
fn a_wrong_directory_is_named_and_costs_minutes_only() {
    let directory = directory();
    let said = |directory: &Path| Store::create(directory).map(drop).unwrap_err().to_string();
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.txt"), "").unwrap();
    assert!(said(&foreign).contains("has other files in it, and is no history"), "{}", said(&foreign));
    let newer = directory.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("pping-history.json"), r#"{"format":2,"by":"pping 9.0.0"}"#).unwrap();
    assert!(said(&newer).contains("was written by pping 9.0.0, in format 2"), "{}", said(&newer));
    let taken = directory.path().join("taken");
    let store = Store::create(&taken).unwrap();
    assert!(said(&taken).contains("another pping writes to the history"), "{}", said(&taken));
    let (state, mut numbers) = (Arc::<State>::default(), Numbers(2));
    let settings = Settings { directory: taken.clone(), limits: LIMITS };
    let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::clone(&state));
    let slices = second(&mut numbers);
    writer.take(&minute(MIDNIGHT, &slices));
    let lost = state.lost_rows.load(Ordering::Relaxed);
    assert!(lost > 0 && state.rows.load(Ordering::Relaxed) == 0);
    drop(store);
    writer.take(&minute(MIDNIGHT + 60, &slices));
    assert_eq!((state.lost_rows.load(Ordering::Relaxed), state.rows.load(Ordering::Relaxed)), (lost, lost));
    let said = command_output(&[], &directory.path().join("nothing"));
    assert!(said.contains("there is no history in"), "{said}");
}

#[test]
fn what_is_no_file_is_named_and_nothing_waits_for_it() {
    let directory = directory();
    write_hours(directory.path());
    let pipe = |name: &str| {
        let path = directory.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    };
    let minute_pipe = pipe("1m/2026-11-26/00-30.parquet");
    fs::create_dir(directory.path().join("1h/2026-11-26/03.parquet")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.path().join("5m/2026-11-26/04.parquet")).unwrap();
    let said = command_output(&["check"], directory.path());
    assert_eq!(said.matches("is damaged: this is not a regular file").count(), 3, "{said}");
    let archive = Archive::new(directory.path().to_owned());
    let answer = archive.history(&asked(MIDNIGHT, MIDNIGHT + 3600, 60)).unwrap();
    assert!(answer.damaged.len() == 1 && !answer.series.is_empty(), "{:?}", answer.damaged);
    let mut writer = writer(directory.path());
    writer.take(&minute(MIDNIGHT + DAY, &[]));
    assert!(minute_pipe.with_added_extension("damaged").exists());
    assert!(command_output(&["check"], directory.path()).ends_with("no file is damaged\n"));
    drop(writer);
    fs::remove_file(directory.path().join("pping-history.json")).unwrap();
    pipe("pping-history.json");
    let said = command_output(&["check"], directory.path());
    assert!(said.contains("pping-history.json: this is not a regular file"), "{said}");
}

#[test]
fn a_file_without_a_column_is_damaged_and_finer_ones_take_its_place() {
    let directory = directory();
    write_hours(directory.path());
    let archive = Archive::new(directory.path().to_owned());
    let hour = asked(MIDNIGHT, MIDNIGHT + 3600, 3600);
    let samples = || {
        let answer = archive.history(&hour).unwrap();
        let cells = answer.series.iter().flat_map(|it| &it.cells).filter_map(|cell| cell.rtt);
        (cells.map(|rtt| rtt.count).sum::<u64>(), answer.damaged)
    };
    let (all, damaged) = samples();
    assert!(all > 20 && damaged.is_empty(), "{all} {damaged:?}");

    let path = directory.path().join("1h/2026-11-26/00.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let name = b"sent_bytes";
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(name) {
            bytes[at] = b'S';
        }
    }
    fs::write(&path, bytes).unwrap();
    let (_, damaged) = samples();
    assert!(damaged.len() == 1 && damaged[0].contains("it lacks the column `sent_bytes`"), "{damaged:?}");
    fs::rename(&path, path.with_added_extension("damaged")).unwrap();
    assert_eq!(samples(), (all, Vec::new()));
}

#[test]
fn a_copy_replaces_files_only_and_none_of_a_history() {
    let directory = directory();
    let history = directory.path().join("history");
    write_hours(&history);
    let export = |file: &Path| {
        let range = ["--from", "2026-11-26T00:00:00Z", "--to", "2026-11-26T01:00:00Z"];
        command_output(&[&["export", file.to_str().unwrap()][..], &range].concat(), &history)
    };
    let copy = directory.path().join("copy.parquet");
    fs::write(&copy, "of yesterday").unwrap();
    assert!(export(&copy).ends_with(" rows\n") && fs::read(&copy).unwrap().starts_with(b"PAR1"));
    assert!(StoredFile::open(&copy).unwrap().count() > 20);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&copy, &link).unwrap();
    for file in [link.as_path(), Path::new("/dev/null"), directory.path()] {
        let said = export(file);
        assert!(said.contains("this exists and is no regular file"), "{said}");
    }
    let said = export(&history.join("1h/copy.parquet"));
    assert!(said.contains("this is inside a history"), "{said}");
    let said = export(&directory.path().join("no/such/copy.parquet"));
    assert!(said.contains("cannot write") && !directory.path().join("no").exists(), "{said}");
    // What waits under the name of the unfinished file is not written to.
    let target = directory.path().join("target");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, directory.path().join("new.parquet.tmp")).unwrap();
    assert!(export(&directory.path().join("new.parquet")).ends_with(" rows\n"));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    let empty = ["--from", "2020-01-01", "--to", "2020-01-02"];
    let file = directory.path().join("empty.parquet");
    let said = command_output(&[&["export", file.to_str().unwrap()][..], &empty].concat(), &history);
    assert!(said.contains("nothing was measured") && !file.exists(), "{said}");
}
