//! What an agent has to withstand: reloads, some of them with invalid files, log rotation, and its own end.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
    sync::atomic::Ordering::Relaxed,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::{
    Soak,
    agent::Agent,
    files::{Files, Variant},
    load::rest,
    lock,
};

/// How long an agent may go on writing to the old records before their lines are counted.
const SETTLING: Duration = Duration::from_millis(500);
/// How long a reload may take on a busy machine. An agent that asks for interfaces waits as long as others hold the
/// kernel's lock of all networks: 15 s if many namespaces are removed at once.
const PATIENCE: Duration = Duration::from_secs(30);

impl Soak<'_> {
    /// Makes the agents read their files again, some of which are invalid.
    pub(super) fn reload(&self) -> Result<()> {
        for variant in Variant::ALL.into_iter().cycle() {
            rest(self.findings, self.plan.reload);
            if self.findings.is_over() {
                break;
            }
            let _guard = lock(&self.agents_lock);
            let agents = [self.restarted, self.lasting];
            let lengths = agents.map(Agent::log_length);
            for (agent, files) in agents.into_iter().zip(&self.files) {
                files.write(variant)?;
                Self::rotate(files)?;
                agent.signal("HUP")?;
            }
            self.counts.reloads.fetch_add(1, Relaxed);
            thread::sleep(SETTLING);
            for (agent, length) in agents.into_iter().zip(lengths) {
                if !agent.wait_for_log(length, variant.answer(), PATIENCE)? {
                    self.findings.note(format!(
                        "{}: no {:?} after {variant:?}",
                        agent.name,
                        variant.answer()
                    ));
                }
            }
            self.count_rotated()?;
            if variant.is_broken() {
                self.counts.refusals.fetch_add(1, Relaxed);
                // An agent does not start with an invalid file.
                self.files.iter().try_for_each(|files| files.write(Variant::Plain))?;
            }
        }
        Ok(())
    }

    /// Moves the records away, as log rotation does before it asks for a reload.
    fn rotate(files: &Files) -> Result<()> {
        if let Some(records) = &files.records {
            fs::rename(records, records.with_extension("old")).context("could not rotate the records")?;
        }
        Ok(())
    }

    fn count_rotated(&self) -> Result<()> {
        if let Some(records) = &self.files[0].records {
            let old = records.with_extension("old");
            self.count(&old)?;
            fs::remove_file(old)?;
        }
        Ok(())
    }

    pub(super) fn count_lines(&self) -> Result<()> {
        self.files[0].records.as_ref().map_or(Ok(()), |records| self.count(records))
    }

    fn count(&self, records: &Path) -> Result<()> {
        let records = BufReader::new(File::open(records).context("could not open the records")?);
        // Bytes and not text, because a killed agent may leave a line that is cut anywhere.
        let lines = records.split(b'\n').count() as u64;
        self.counts.lines.fetch_add(lines, Relaxed);
        Ok(())
    }

    /// Ends the mortal agent, mostly by SIGKILL, and starts it again.
    pub(super) fn restart(&self) -> Result<()> {
        for number in 1_u64.. {
            rest(self.findings, self.plan.restart);
            if self.findings.is_over() {
                break;
            }
            let _guard = lock(&self.agents_lock);
            let (signal, count) =
                if number % 3 == 0 { ("TERM", &self.counts.ends) } else { ("KILL", &self.counts.kills) };
            self.restarted.end(signal)?;
            count.fetch_add(1, Relaxed);
            thread::sleep(Duration::from_millis(1000 + number * 700 % 2000));
            self.restarted.start()?;
        }
        Ok(())
    }
}
