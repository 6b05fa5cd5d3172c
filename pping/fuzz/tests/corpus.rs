//! Replays the corpora: every property still holds for them. Needs no fuzzer.

use std::{fs, io, path::Path};

fn replay(target: &str, check: impl Fn(&[u8])) -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files =
        fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    assert!(files.len() >= 20, "there are only {} inputs in {}", files.len(), directory.display());
    for file in files {
        eprintln!("{}", file.display());
        check(&fs::read(file)?);
    }
    Ok(())
}

#[test]
fn parser_holds_for_its_corpus() -> io::Result<()> {
    replay("parse", pping_fuzz::parse::check)
}

#[test]
fn state_machine_holds_for_its_corpus() -> io::Result<()> {
    replay("matching", pping_fuzz::matching::check)
}

#[test]
fn forged_packets_change_nothing_in_their_corpus() -> io::Result<()> {
    replay("forged", pping_fuzz::forged::check)
}

#[test]
fn capture_reader_holds_for_its_corpus() -> io::Result<()> {
    replay("capture", pping_fuzz::capture::check)
}
