//! The results: tables for people, and the same as JSON, with each round, for programs.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{Part, measure::Figure};

/// All figures so far.
#[derive(Serialize)]
pub(crate) struct Report {
    /// The machine that they were measured on.
    machine: String,
    figures: Vec<Entry>,
    /// The current part.
    #[serde(skip)]
    part: Option<Part>,
}

#[derive(Serialize)]
struct Entry {
    part: Option<Part>,
    name: String,
    unit: &'static str,
    #[serde(flatten)]
    figure: Figure,
}

impl Report {
    /// A report without figures.
    pub(crate) fn new(machine: String) -> Self {
        Self { machine, figures: Vec::new(), part: None }
    }

    /// Adds the next figures to another part.
    pub(crate) fn begin(&mut self, part: Part) {
        self.part = Some(part);
    }

    /// Adds a figure that is printed elsewhere.
    pub(crate) fn take(&mut self, name: impl Into<String>, unit: &'static str, figure: &Figure) {
        self.figures.push(Entry { part: self.part, name: name.into(), unit, figure: figure.clone() });
    }

    /// Adds a figure in ns, and prints it.
    pub(crate) fn print(&mut self, name: &str, figure: &Figure) {
        self.print_as(name, "ns", figure);
    }

    /// Adds a figure in another unit, which the name or the table shows, and prints it.
    pub(crate) fn print_as(&mut self, name: &str, unit: &'static str, figure: &Figure) {
        println!("{name:<52} {:>7.1} {:>7.1} {:>7.1}", figure.median, figure.min, figure.max);
        self.take(name, unit, figure);
    }

    /// Adds a single measurement, and prints it.
    pub(crate) fn print_one(&mut self, name: &str, unit: &'static str, value: f64) -> Result<()> {
        println!("{name:<52} {value:>7.1}");
        self.take_one(name, unit, value)
    }

    /// Adds a single measurement.
    pub(crate) fn take_one(&mut self, name: impl Into<String>, unit: &'static str, value: f64) -> Result<()> {
        self.take(name, unit, &Figure::of([value])?);
        Ok(())
    }

    /// Writes all figures to a file.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}
