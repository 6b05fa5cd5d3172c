//! Writes the corpora that the fuzz targets begin with: `cargo run --package pping-fuzz --example seeds`.
//! What fuzzing has found is in the same directories, as `found-*`, and stays.

mod captures;
mod frames;
mod headers;
mod packed;
mod talks;

use std::{fs, io, path::Path};

/// An input, and what it is called.
type Seed = (String, Vec<u8>);

fn main() -> io::Result<()> {
    write("parse", frames::seeds())?;
    write("matching", talks::seeds())?;
    write("capture", captures::seeds())
}

fn write(target: &str, seeds: Vec<Seed>) -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&directory)?;
    for (name, input) in seeds {
        fs::write(directory.join(name), input)?;
    }
    Ok(())
}
