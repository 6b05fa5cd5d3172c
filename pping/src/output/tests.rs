use std::{
    fs,
    io::{self, PipeReader, Read as _, Write as _},
    os::fd::AsRawFd as _,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use super::{target::Target, *};
use crate::{
    config::Format,
    records::{FlowRecord, Record, Tuple, format},
};

fn record() -> Record {
    Record::Flow(FlowRecord {
        timestamp: 1,
        tuple: Tuple {
            src_network: None,
            dest_network: None,
            src_ip: "192.0.2.1".parse().unwrap(),
            src_port: 1,
            dest_ip: "192.0.2.2".parse().unwrap(),
            dest_port: 2,
            protocol: "TCP",
        },
        flow_event: "opening",
        reason: "SYN",
        triggered_by: "dest",
        interface: None,
    })
}

fn batch(format: Format, records: u64) -> Batch {
    let (mut batch, mut encoder) = (Batch::default(), format::encoder(format));
    (0..records).for_each(|_| encoder.append(&record(), &mut batch));
    batch
}

fn open(path: &Path, format: Format, on_failure: OnFailure) -> (Output, Ended) {
    Output::open(Role::Records, Some(path), format::encoder(format).framing(), on_failure).unwrap()
}

fn wait_until_written(output: &Output) {
    while output.shared.waiting.load(Ordering::Relaxed) > 0 {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until the queue is empty. The thread may still be writing the last batch.
fn wait_until_taken(output: &Output) {
    while output.shared.waiting_bytes.load(Ordering::Relaxed) > 0 {
        thread::sleep(POLL_INTERVAL);
    }
}

/// The size of a batch that fills the queue on its own, bytes.
const LARGE: usize = MAX_WAITING_BYTES + 1;

/// A batch of one record.
fn large_batch() -> Batch {
    let mut batch = Batch::default();
    batch.push(Framing::LINES, |out| out.resize(LARGE, b'\n'));
    batch
}

/// An output to a pipe from which nothing is read yet.
fn open_pipe(format: Format, on_failure: OnFailure) -> (PipeReader, Output, Ended) {
    let (reader, writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let (output, ended) = open(Path::new(&path), format, on_failure);
    (reader, output, ended)
}

/// Makes a named pipe, which goes with its directory.
fn named_pipe() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    (directory, path)
}

/// Reads to the end of a pipe, but begins only after a moment.
fn read_later(mut reader: PipeReader) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        thread::sleep(10 * POLL_INTERVAL);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

fn elements(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let array: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    array.len() as u64
}

#[test]
fn a_json_array_is_valid_after_drops_and_rotation() {
    let directory = tempfile::tempdir().unwrap();
    let (current, rotated) = (directory.path().join("now"), directory.path().join("then"));
    let (mut output, _ended) = open(&current, Format::Json, OnFailure::End);
    let stop = AtomicBool::new(false);
    // The first batch is dropped, as when the queue is full.
    drop(batch(Format::Json, 2));
    output.write_all(batch(Format::Json, 1), &stop);
    drop(batch(Format::Json, 1));
    output.write_all(batch(Format::Json, 3), &stop);
    wait_until_written(&output);
    fs::rename(&current, &rotated).unwrap();
    output.reopener().reopen();
    output.write_all(batch(Format::Json, 0), &stop);
    assert_eq!(output.finish_all(&stop), 0);
    assert_eq!((elements(&rotated), elements(&current)), (4, 0));
}

#[test]
fn writing_goes_on_in_the_old_file_when_reopening_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (before, after) = (directory.path().join("before"), directory.path().join("after"));
    fs::create_dir(&before).unwrap();
    let (mut output, mut ended) = open(&before.join("file"), Format::Jsonl, OnFailure::End);
    let stop = AtomicBool::new(false);
    output.write_all(batch(Format::Jsonl, 1), &stop);
    wait_until_written(&output);
    fs::rename(&before, &after).unwrap();
    output.reopener().reopen();
    output.write_all(batch(Format::Jsonl, 2), &stop);
    assert_eq!(output.finish_all(&stop), 0);
    assert!(ended.try_recv().is_err());
    assert_eq!(fs::read_to_string(after.join("file")).unwrap().lines().count(), 3);
}

#[test]
fn a_full_device_ends_a_replay_but_not_live_monitoring() {
    let full = Path::new("/dev/full");
    let (mut output, mut ended) = open(full, Format::Jsonl, OnFailure::End);
    let stop = AtomicBool::new(false);
    output.write_all(batch(Format::Jsonl, 3), &stop);
    output.finish_all(&stop);
    let error = ended.try_recv().unwrap().expect("an error").to_string();
    assert!(error.starts_with("writing to /dev/full failed: No space left"), "{error}");

    let (mut output, mut ended) = open(full, Format::Jsonl, OnFailure::Drop);
    output.write_all(batch(Format::Jsonl, 3), &stop);
    output.write_all(batch(Format::Jsonl, 4), &stop);
    wait_until_written(&output);
    assert_eq!((output.lines_lost(), output.lines_refused()), (7, 0));
    assert_eq!(output.finish_all(&stop), 7);
    assert!(ended.try_recv().is_err());
}

#[test]
fn records_are_refused_while_many_bytes_wait_for_a_reader() {
    let (reader, mut output, mut ended) = open_pipe(Format::Jsonl, OnFailure::Drop);
    // The thread is stuck in the first batch, and the second one fills the queue.
    output.write(large_batch());
    wait_until_taken(&output);
    output.write(large_batch());
    output.write(large_batch());
    output.write(batch(Format::Jsonl, 5));
    assert_eq!(output.lines_refused(), 6);
    let read = read_later(reader);
    wait_until_written(&output);
    output.write(batch(Format::Jsonl, 3));
    assert_eq!(output.finish_all(&AtomicBool::new(false)), 6);
    assert!(ended.try_recv().is_err());
    assert_eq!(read.join().unwrap().len(), 2 * LARGE + batch(Format::Jsonl, 3).len());
}

#[test]
fn a_capture_waits_while_many_bytes_wait_for_a_reader() {
    const BATCHES: usize = 5;
    let (mut reader, mut output, _ended) = open_pipe(Format::Jsonl, OnFailure::End);
    let shared = Arc::clone(&output.shared);
    let writing = thread::spawn(move || {
        let stop = AtomicBool::new(false);
        (0..BATCHES).for_each(|_| output.write_all(large_batch(), &stop));
        output.finish_all(&stop)
    });
    thread::sleep(Duration::from_millis(100));
    let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
    while let more @ 1.. = reader.read(&mut buffer).unwrap() {
        bytes += more;
        let waiting = shared.waiting_bytes.load(Ordering::Relaxed);
        assert!(waiting <= LARGE, "{waiting} bytes wait");
    }
    assert_eq!((bytes, writing.join().unwrap()), (BATCHES * LARGE, 0));
}

#[test]
fn capture_stops_waiting_when_stopped_or_unread() {
    let (reader, mut output, ended) = open_pipe(Format::Jsonl, OnFailure::End);
    let stop = AtomicBool::new(false);
    output.write_all(large_batch(), &stop);
    wait_until_taken(&output);
    output.write_all(large_batch(), &stop);
    output.write_all(large_batch(), &AtomicBool::new(true));
    assert_eq!(output.lines_refused(), 1);
    drop(reader);
    output.write_all(large_batch(), &stop);
    assert!(ended.blocking_recv().unwrap().is_none());
}

#[test]
fn a_json_array_is_closed_although_the_queue_was_full() {
    let (reader, mut output, _ended) = open_pipe(Format::Json, OnFailure::Drop);
    // More than a pipe has room for.
    output.write(batch(Format::Json, 10_000));
    wait_until_taken(&output);
    while output.lines_refused() == 0 {
        output.write(batch(Format::Json, 1));
    }
    let read = read_later(reader);
    assert_eq!(output.finish(), 1);
    let array: Vec<Value> = serde_json::from_slice(&read.join().unwrap()).unwrap();
    assert_eq!(array.len(), 10_000 + WAITING_BATCHES);
}

#[test]
fn a_record_that_cannot_be_truncated_is_completed_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "").unwrap();
    let mut target = Target::open("write", &path, Framing::LINES).unwrap();
    let bytes = b"one\ntwo\nthree\n";
    let ends = || [4, 8, 14].into_iter();
    target.write(&bytes[..6], std::iter::empty()).unwrap();
    // Another process writes too, so that nothing may be truncated.
    let mut other = fs::OpenOptions::new().append(true).open(&path).unwrap();
    other.write_all(b"!").unwrap();
    assert_eq!(target.repair(bytes, ends(), 6), 8);
    target.write(b"four\n", [5].into_iter()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntw!o\nfour\n");
    // Now no other process has written.
    target.write(b"fi", std::iter::empty()).unwrap();
    assert_eq!(target.repair(b"five\n", [5].into_iter(), 2), 0);
    target.write(b"six\n", [4].into_iter()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntw!o\nfour\nsix\n");
}

/// Tests with the feature `live` run as root.
#[cfg(feature = "live")]
mod disk {
    use pping_lab::on_small_disk;

    use super::*;

    /// Writes until the disk is full, makes room, writes until the file grows again, and fills the disk again.
    fn fill_and_make_room(format: Format, elements: impl Fn(&Path) -> u64 + Sync) {
        let stop = AtomicBool::new(false);
        let written = on_small_disk(64, |disk| {
            let (path, ballast) = (disk.join("records"), disk.join("ballast"));
            fs::write(&ballast, vec![0; 20_000]).unwrap();
            let (mut output, mut ended) = open(&path, format, OnFailure::Drop);
            let mut sent = 0;
            let mut send = |output: &mut Output, records| {
                output.write_all(batch(format, records), &stop);
                wait_until_written(output);
                sent += records;
            };
            while output.lines_lost() < 100 {
                send(&mut output, 7);
            }
            let before = fs::metadata(&path).unwrap().len();
            assert!(before > 30_000, "only {before}");
            fs::remove_file(&ballast).unwrap();
            let start = Instant::now();
            while fs::metadata(&path).unwrap().len() < before + 5_000 {
                assert!(start.elapsed() < Duration::from_mins(1), "no more is written");
                send(&mut output, 1);
            }
            // The disk is full again at the end.
            while fs::metadata(&path).unwrap().len() < 65_000 {
                send(&mut output, 5);
            }
            send(&mut output, 100);
            let lost = output.finish_all(&stop);
            assert!(ended.try_recv().is_err());
            assert_eq!(elements(&path) + lost, sent, "{lost} lost");
        });
        written.unwrap();
    }

    #[test]
    fn a_full_disk_drops_records_but_tears_no_line() {
        let one = String::from_utf8(batch(Format::Jsonl, 1).bytes().to_vec()).unwrap();
        fill_and_make_room(Format::Jsonl, |path| {
            let text = fs::read_to_string(path).unwrap();
            assert!(text.split_inclusive('\n').all(|line| line == one), "{text}");
            text.lines().count() as u64
        });
    }

    #[test]
    fn a_json_array_on_a_full_disk_is_closed() {
        fill_and_make_room(Format::Json, elements);
    }

    #[test]
    fn a_json_array_begins_once_a_full_disk_has_room() {
        let stop = AtomicBool::new(false);
        let ended = on_small_disk(16, |disk| {
            let (path, ballast) = (disk.join("records"), disk.join("ballast"));
            fs::write(&path, "").unwrap();
            while fs::write(
                &ballast,
                vec![0; fs::metadata(&ballast).map_or(0, |it| it.len() as usize) + 4096],
            )
            .is_ok()
            {}
            let (mut output, _ended) = open(&path, Format::Json, OnFailure::Drop);
            output.write_all(batch(Format::Json, 2), &stop);
            wait_until_written(&output);
            assert_eq!(output.lines_lost(), 2);
            fs::remove_file(&ballast).unwrap();
            thread::sleep(Duration::from_millis(300));
            output.write_all(batch(Format::Json, 3), &stop);
            assert_eq!(output.finish_all(&stop), 2);
            assert_eq!(elements(&path), 3);
        });
        ended.unwrap();
    }
}

#[test]
fn a_named_pipe_without_a_reader_is_refused() {
    let (_directory, path) = named_pipe();
    let opened = Output::open(Role::Records, Some(&path), Framing::LINES, OnFailure::Drop);
    let error = opened.err().expect("it has no reader").to_string();
    assert_eq!(error, format!("--write {}: this pipe has no reader; start one first", path.display()));
}

#[test]
fn the_reader_of_a_named_pipe_may_come_later() {
    let (_directory, path) = named_pipe();
    let of_reader = path.clone();
    let reader = thread::spawn(move || {
        thread::sleep(10 * POLL_INTERVAL);
        fs::read_to_string(of_reader).unwrap()
    });
    let (mut output, _ended) = open(&path, Format::Jsonl, OnFailure::End);
    output.write_all(batch(Format::Jsonl, 100), &AtomicBool::new(false));
    assert_eq!(output.finish(), 0);
    assert_eq!(reader.join().unwrap().lines().count(), 100);
}
