//! Writes the corpora that the fuzz targets start with: `cargo run --package pping-fuzz --example seeds`. The inputs
//! that fuzzing has found are in the same directories as `found-*`, and stay there.

mod captures;
mod conversations;
mod forged;
mod frames;
mod headers;
mod packed;

use std::{fs, io, path::Path};

/// The name of an input, and its bytes.
type Seed = (String, Vec<u8>);

fn main() -> io::Result<()> {
    write("parse", frames::seeds())?;
    write("matching", conversations::seeds())?;
    write("forged", forged::seeds())?;
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
