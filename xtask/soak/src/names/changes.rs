//! Changes by the groups socket, so many a second, and how long their answers take.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Write as _},
    net::Ipv4Addr,
    os::unix::net::UnixStream,
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::findings::Findings;

/// The changes in a second.
pub(super) const RATE: u64 = 10_000;

/// The changes that are sent at once: every 2 ms.
const BATCH: u64 = 20;

/// One in so many changes moves an address that is pinged.
const PINGED: u64 = 10;

/// The addresses that are pinged, and as many names for them.
pub(super) const ADDRESSES: u64 = 1000;

/// The other prefixes that are added, moved and removed in turn, and the distance between two of them: three in four
/// are in the file, too.
const OTHERS: u64 = 100_000;
const DISTANCE: u64 = 13;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The source of the changes.
const SOURCE: &str = "soak";

/// The address of a number that is in the file, if the file has as many.
pub(super) fn in_file(number: u64) -> Ipv4Addr {
    Ipv4Addr::from(100 << 24 | number as u32)
}

/// The addresses that are pinged.
pub(super) fn pinged(number: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, 12, (number / 250) as u8, (1 + number % 250) as u8)
}

/// The prefixes of the source with their labels.
pub(super) type Names = BTreeMap<String, String>;

/// Makes changes, and knows what has to come of them.
#[derive(Default)]
pub(super) struct Changes {
    step: u64,
    pub(super) expected: Names,
}

impl Changes {
    /// The next change: its address, and the label that it gets. `None` takes its label away.
    fn next(&mut self) -> (Ipv4Addr, Option<String>) {
        let step = self.step;
        self.step += 1;
        if step.is_multiple_of(PINGED) {
            let number = step / PINGED;
            let (address, round) = (number % ADDRESSES, number / ADDRESSES);
            // Each address has another name in each round, which another one had before.
            return (pinged(address), Some(format!("subscriber-{}", (address + 7 * round) % ADDRESSES)));
        }
        let number = step - step / PINGED;
        let address = in_file(number % OTHERS * DISTANCE);
        match number / OTHERS % 3 {
            0 => (address, Some(format!("new-{}", number % 5000))),
            1 => (address, Some(format!("moved-{}", number % 5000))),
            _ => (address, None),
        }
    }

    /// Writes the request of the next change.
    fn write(&mut self, lines: &mut String) {
        let (address, label) = self.next();
        let prefix = format!("{address}/32");
        let request = match &label {
            Some(label) => json!({"op": "add", "prefix": prefix, "label": label, "source": SOURCE}),
            None => json!({"op": "remove", "prefix": prefix, "source": SOURCE}),
        };
        lines.extend([request.to_string().as_str(), "\n"]);
        match label {
            Some(label) => drop(self.expected.insert(prefix, label)),
            None => drop(self.expected.remove(&prefix)),
        }
    }

    /// Sends changes at their times until the soak is over, whether or not earlier ones are answered. Returns how long
    /// answers took from the time when their requests were due, and how long all of it took.
    pub(super) fn run(&mut self, socket: &Path, findings: &Findings) -> Result<(Times, Duration)> {
        let mut client = Client::connect(socket)?;
        let mut writer = client.stream.get_ref().try_clone()?;
        let (sent, to_read) = channel();
        let began = Instant::now();
        let times = thread::scope(|scope| {
            let reader = scope.spawn(move || client.read_answers(&to_read));
            let written = self.send(&mut writer, &sent, findings);
            // Nothing more is to be read.
            drop(sent);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written.and(read)
        })?;
        Ok((times, began.elapsed()))
    }

    fn send(&mut self, writer: &mut UnixStream, sent: &Sender<Instant>, findings: &Findings) -> Result<()> {
        let began = Instant::now();
        for batch in 0_u32.. {
            if findings.is_over() {
                break;
            }
            let due = began + Duration::from_micros(BATCH * 1_000_000 / RATE) * batch;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut lines = String::new();
            for _ in 0..BATCH {
                self.write(&mut lines);
            }
            writer.write_all(lines.as_bytes()).context("the groups socket takes no more")?;
            sent.send(due).ok();
        }
        Ok(())
    }
}

/// How long answers took, in microseconds.
#[derive(Default)]
pub(super) struct Times(Vec<u32>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time.as_micros().try_into().unwrap_or(u32::MAX));
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this share does not exceed.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len().max(1) - 1) as f64 * share;
        Duration::from_micros(sorted.get(at as usize).copied().unwrap_or(0).into())
    }
}

/// A client of the groups socket.
pub(super) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("the groups socket does not answer")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        let length = self.stream.read_line(&mut line).context("no answer at the groups socket")?;
        ensure!(length > 0, "pping closed the groups socket");
        Ok(serde_json::from_str(&line)?)
    }

    /// Reads the answers to batches that were due at these times.
    fn read_answers(&mut self, due: &Receiver<Instant>) -> Result<Times> {
        let mut times = Times::default();
        for due in due {
            for _ in 0..BATCH {
                let answer = self.answer()?;
                ensure!(answer["ok"] == true, "a change was refused: {answer}");
                times.add(due.elapsed());
            }
        }
        Ok(times)
    }

    /// Moves one address to and fro until the soak is over, each time once the answer has come.
    pub(super) fn move_one(&mut self, pause: Duration, findings: &Findings) -> Result<Times> {
        let mut times = Times::default();
        let mut labels = VecDeque::from(["here", "there"]);
        while !findings.is_over() {
            labels.rotate_left(1);
            let asked = Instant::now();
            let request = json!({"op": "add", "prefix": "10.13.0.1", "label": labels[0], "source": "one"});
            self.stream.get_mut().write_all(format!("{request}\n").as_bytes())?;
            let answer = self.answer()?;
            ensure!(answer["ok"] == true, "a change was refused: {answer}");
            times.add(asked.elapsed());
            thread::sleep(pause);
        }
        Ok(times)
    }

    /// Everything that the source lists. Fails if another one counts in its place.
    pub(super) fn list(&mut self) -> Result<Names> {
        let request = json!({"op": "list", "source": SOURCE});
        self.stream.get_mut().write_all(format!("{request}\n").as_bytes())?;
        let mut names = Names::new();
        loop {
            let line = self.answer()?;
            match (line["prefix"].as_str(), line["label"].as_str()) {
                (Some(prefix), Some(label)) => {
                    ensure!(line["current"] == true, "another source counts: {line}");
                    names.insert(prefix.to_owned(), label.to_owned());
                }
                _ if line["ok"] == true => return Ok(names),
                _ => bail!("the list is refused: {line}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_move_and_remove() {
        let (mut changes, mut lines) = (Changes::default(), String::new());
        let round = OTHERS * PINGED / (PINGED - 1);
        let mut lengths = Vec::new();
        for _ in 0..3 {
            (0..round).for_each(|_| changes.write(&mut lines));
            lengths.push(changes.expected.len() as u64);
        }
        assert_eq!(lengths, [ADDRESSES + OTHERS - 1, ADDRESSES + OTHERS, ADDRESSES]);
        assert_eq!(changes.expected[&format!("{}/32", pinged(0))], "subscriber-231");
        assert!(lines.starts_with(
            "{\"label\":\"subscriber-0\",\"op\":\"add\",\"prefix\":\"10.12.0.1/32\",\"source\":\"soak\"}\n"
        ));
    }

    #[test]
    fn quantiles_are_of_all_answers() {
        let mut times = Times::default();
        (1..=100).for_each(|time| times.add(Duration::from_micros(time)));
        let at = |share| times.quantile(share).as_micros();
        assert_eq!((at(0.5), at(0.99), at(1.0)), (50, 99, 100));
    }
}
