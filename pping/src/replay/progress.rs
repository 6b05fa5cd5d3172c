//! Shows the progress of reading.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::input::Input;
use crate::config::Config;

/// The time before the progress line appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is rewritten.
const INTERVAL: Duration = Duration::from_millis(200);

/// Returns to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

const MEGABYTE: f64 = 1e6;

/// The progress line on standard error, if that is a terminal and records do not go to a terminal too.
pub(super) struct Progress {
    is_shown: bool,
    has_line: bool,
    read: Arc<AtomicU64>,
    len: Option<u64>,
    started: Instant,
    due: Instant,
}

impl Progress {
    pub(super) fn new(config: &Config, input: &Input) -> Self {
        let (started, is_quiet) = (Instant::now(), config.keeps_terminal_free());
        Self {
            is_shown: is_quiet && io::stderr().is_terminal(),
            has_line: false,
            read: Arc::clone(&input.read),
            len: input.len,
            started,
            due: started + PATIENCE,
        }
    }

    /// Writes the line if it is due.
    pub(super) fn show(&mut self, packets: u64) {
        if !self.is_shown {
            return;
        }
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + INTERVAL;
        self.has_line = true;
        let seconds = (now - self.started).as_secs_f64();
        say(&format!("{CLEAR}{}", line(self.read.load(Ordering::Relaxed), self.len, packets, seconds)));
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.has_line) {
            say(CLEAR);
        }
    }
}

fn line(read: u64, len: Option<u64>, packets: u64, seconds: f64) -> String {
    let millions = packets as f64 / seconds / 1e6;
    let megabytes = read as f64 / MEGABYTE;
    match len {
        Some(len) if len > 0 => format!(
            "{megabytes:.0} of {:.0} MB ({:.0} %), {millions:.2} million packets/s",
            len as f64 / MEGABYTE,
            100.0 * read as f64 / len as f64
        ),
        _ => format!("{megabytes:.0} MB, {millions:.2} million packets/s"),
    }
}

/// Writes to standard error, and ignores errors: a closed terminal needs no progress line.
fn say(text: &str) {
    let mut stderr = io::stderr();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_total_if_it_is_known() {
        assert_eq!(
            line(250_000_000, Some(1_000_000_000), 4_200_000, 1.5),
            "250 of 1000 MB (25 %), 2.80 million packets/s"
        );
        assert_eq!(line(250_000_000, None, 3_000_000, 1.0), "250 MB, 3.00 million packets/s");
    }
}
