//! How late pping ends its seconds.

use std::{
    io::{self, BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use crate::{Namespace, Result, error::Context};

/// How late an agent ended each second, and how many seconds no event reported.
#[derive(Debug, Default)]
pub struct Seconds {
    /// From the full second until the agent had drained the events of it, ms.
    delays: Vec<u64>,
    gaps: u64,
    last: Option<u64>,
}

impl Seconds {
    /// Reads the stream of events of the agent that listens at `address`, until `is_over`. pping ends a stream now and
    /// then, and the next one is opened.
    ///
    /// # Errors
    /// If curl is missing, or an event is none.
    pub fn listen(
        seconds: &Mutex<Self>,
        host: &Namespace,
        address: &str,
        is_over: impl Fn() -> bool,
    ) -> Result<()> {
        let url = format!("http://{address}/api/v1/events");
        while !is_over() {
            let mut curl = host.command("curl");
            curl.args(["-sN", "--noproxy", "*", &url]).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = KillOnDrop(curl.spawn().while_doing(|| "start curl".to_owned())?);
            let Some(output) = child.0.stdout.take() else { continue };
            for line in BufReader::new(output).lines() {
                let line = line.while_doing(|| format!("read {url}"))?;
                if let Some(data) = line.strip_prefix("data:") {
                    let time = time_of(data).while_doing(|| format!("understand {data}"))?;
                    seconds.lock().unwrap_or_else(PoisonError::into_inner).add(time);
                }
                if is_over() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Adds a summary with this time, ns.
    fn add(&mut self, time: u64) {
        let second = time / 1_000_000_000;
        let Some(last) = self.last.replace(second) else { return };
        if second == last {
            return;
        }
        self.gaps += second.saturating_sub(last + 1);
        self.delays.push(time % 1_000_000_000 / 1_000_000);
    }

    /// The number of seconds.
    pub fn count(&self) -> usize {
        self.delays.len()
    }

    /// The number of seconds without an event.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Returns the delay that this share of seconds does not exceed, ms.
    pub fn quantile(&self, share: f64) -> u64 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays.get(((delays.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(0)
    }
}

/// The time of a summary, ns.
fn time_of(summary: &str) -> io::Result<u64> {
    let summary: Value = serde_json::from_str(summary)?;
    summary["time"].as_u64().ok_or_else(|| io::Error::other("it has no time"))
}

/// A process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_and_gaps_are_counted() {
        let mut seconds = Seconds::default();
        for time in [7_010_000_000, 8_020_000_000, 8_900_000_000, 11_300_000_000] {
            seconds.add(time);
        }
        assert_eq!((seconds.count(), seconds.gaps()), (2, 2));
        assert_eq!((seconds.quantile(0.5), seconds.quantile(1.0)), (20, 300));
        assert_eq!(time_of(r#"{"time":5}"#).unwrap(), 5);
        assert!(time_of("{}").is_err());
    }
}
