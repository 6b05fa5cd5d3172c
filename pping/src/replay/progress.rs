//! The progress of reading, for people who wait for it.

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

/// A shorter wait needs no progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is rewritten.
const INTERVAL: Duration = Duration::from_millis(200);

/// Back to the start of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[K";

const MEGABYTE: f64 = 1e6;

/// A line on standard error that changes; none where that is no terminal, or where records go to the same one.
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
        let (started, is_quiet) = (Instant::now(), config.is_quiet_on_terminal());
        Self {
            is_shown: is_quiet && io::stderr().is_terminal(),
            has_line: false,
            read: Arc::clone(&input.read),
            len: input.len,
            started,
            due: started + PATIENCE,
        }
    }

    /// Writes the line, if it is time to.
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

    /// Takes the line away.
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

/// A closed terminal needs no progress.
fn say(text: &str) {
    let mut stderr = io::stderr();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_of_how_much_where_that_is_known() {
        assert_eq!(
            line(250_000_000, Some(1_000_000_000), 4_200_000, 1.5),
            "250 of 1000 MB (25 %), 2.80 million packets/s"
        );
        assert_eq!(line(250_000_000, None, 3_000_000, 1.0), "250 MB, 3.00 million packets/s");
    }
}
